// Parts of GpuJpegDecoder that need no GPU.
#include "dtrain/ops/jpeg_decode.h"

namespace dtrain {

#ifndef DTRAIN_WITH_CUDA
struct GpuJpegDecoder::State {};
GpuJpegDecoder::GpuJpegDecoder(Context&, const JpegDecodeOptions&) {
  throw Error("JPEG decoding on a GPU: built without CUDA; configure with -DDTRAIN_CUDA=ON");
}
GpuJpegDecoder::~GpuJpegDecoder() = default;
std::vector<int64_t> GpuJpegDecoder::decode(std::span<const EncodedImage>, const Tensor&) { return {}; }
#endif

}  // namespace dtrain
