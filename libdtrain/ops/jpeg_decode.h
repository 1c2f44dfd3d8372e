// JPEGs to samples on a GPU: decoded through nvJPEG, by the GPU's own engine where it has one, and resampled.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "libdtrain/core/context.h"
#include "libdtrain/core/encoded_image.h"

namespace dtrain {

struct JpegDecodeOptions {
  bool fancy_upsampling = true;       // chroma is interpolated, else replicated
  size_t memory = size_t{256} << 20;  // bytes of the device for decoded images, which are whole ones
};

class GpuJpegDecoder {
 public:
  // Throws Error: a CPU's context, nvJPEG is not installed, too little memory. A context whose GPU has no engine for
  // JPEGs gets a notice: its other units decode them, together with a processor.
  explicit GpuJpegDecoder(Context& context, const JpegDecodeOptions& options = {});
  ~GpuJpegDecoder();
  GpuJpegDecoder(const GpuJpegDecoder&) = delete;
  GpuJpegDecoder& operator=(const GpuJpegDecoder&) = delete;

  // Queues on Stream::copy what writes row i of `pixels`, [n, h, w, 3] on the device, f32 in [0, 255] or u8, for each
  // image i that has a JPEG. Returns the rows that are not written: nvJPEG does not decode their image or finds
  // it damaged, or the image takes more than `memory`. What `images` holds may be changed once a moment recorded after
  // that is past.
  //
  // A sample is the decoded image resampled across and then down. The transform and the colours are nvJPEG's, a few
  // levels off libjpeg's; the resampling is that of the host.
  std::vector<int64_t> decode(std::span<const EncodedImage> images, const Tensor& pixels);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dtrain
