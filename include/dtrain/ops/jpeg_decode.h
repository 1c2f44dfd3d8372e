// GpuJpegDecoder: JPEG decoding by nvJPEG, on the GPU's hardware decoder if it has one, and resampling.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "dtrain/core/context.h"
#include "dtrain/core/encoded_image.h"

namespace dtrain {

struct JpegDecodeOptions {
  bool fancy_upsampling = true;       // interpolate chroma, else replicate it
  size_t memory = size_t{256} << 20;  // device memory for decoded full-size images, bytes
};

class GpuJpegDecoder {
 public:
  // Throws Error for a CPU context, without nvJPEG, or if memory is short. Without a hardware decoder the context gets
  // a notice: nvJPEG then decodes on the CPU and the GPU's multiprocessors.
  explicit GpuJpegDecoder(Context& context, const JpegDecodeOptions& options = {});
  ~GpuJpegDecoder();
  GpuJpegDecoder(const GpuJpegDecoder&) = delete;
  GpuJpegDecoder& operator=(const GpuJpegDecoder&) = delete;

  // Enqueues on Stream::copy the decoding of each image i that has a JPEG into row i of `pixels`, [n, h, w, 3] on the
  // device, f32 in [0, 255] or u8. Returns the rows that are not written: images that nvJPEG does not support or finds
  // damaged, or that need more than `memory`. `images` must stay unchanged until an event recorded afterwards is past.
  //
  // Samples are resampled horizontally, then vertically, with the same filters as on the host. IDCT and colour
  // conversion are nvJPEG's, a few levels off libjpeg.
  std::vector<int64_t> decode(std::span<const EncodedImage> images, const Tensor& pixels);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dtrain
