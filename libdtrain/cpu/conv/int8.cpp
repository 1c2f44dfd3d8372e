#include "libdtrain/cpu/conv/int8.h"

#include <algorithm>
#include <numeric>

#include "libdtrain/cpu/conv/amx_gemm.h"
#include "libdtrain/cpu/conv/im2col.h"
#include "libdtrain/cpu/conv/weight_rounding.h"
#include "libdtrain/cpu/gemm/gemm.h"
#include "libdtrain/cpu/kernels/table.h"

namespace dtrain::cpu {
namespace {

// Quantises a row of o.w pixels to `channels` channels, those beyond o.c being x.zero.
void quantize_row(const GemmKernelsU8S8& kernels, const ConvShape& o, const Int8Input& x, const float* from,
                  int64_t channels, uint8_t* to) {
  uint8_t* const tight = to + o.w * (channels - o.c);  // widened in place: reads stay ahead of writes
  kernels.quantize(o.w * o.c, from, 1 / x.scale, x.zero, tight);
  if (channels != o.c) widen_pixels(tight, o.w, o.c, channels, x.zero, to);
}

}  // namespace

Int8Weights::Int8Weights(Context& context, const ConvShape& o, const float* w, const std::vector<float>& scale)
    : channels_(round_up_to_quads(o.c)), scales_(static_cast<size_t>(o.k)), sums_(static_cast<size_t>(o.k)) {
  const auto& gemm = context.kernels().gemm_u8s8;
  const int64_t width = gemm.columns, panels = (o.k + width - 1) / width;
  const int64_t taps = o.r * o.s, inner = taps * channels_;
  DT_CHECK(int8_weights_fit(taps, o.c), "int8 convolution: filters of ", inner, " weights; expected at most ",
           kMaxInt8Depth);
  packed_ = context.zeros({panels * width * inner}, DType::u8);
  auto* const to = static_cast<int8_t*>(packed_.raw());
#pragma omp parallel for schedule(static) num_threads(context.threads())
  for (int64_t k = 0; k < o.k; ++k) {
    std::vector<float> own(static_cast<size_t>(inner), 0);
    for (int64_t t = 0; t < taps; ++t) std::copy_n(w + (k * taps + t) * o.c, o.c, own.data() + t * channels_);
    const auto [step, integers] = quantize_filter(own, gemm.max_pair_sum);
    const auto at = static_cast<size_t>(k);
    scales_[at] = step * (scale.empty() ? 1 : scale[at]);
    sums_[at] = std::reduce(integers.begin(), integers.end(), int32_t{0});
    int8_t* const column = to + k / width * width * inner + k % width * kQuad;
    for (int64_t i = 0; i < inner; i += kQuad) std::copy_n(integers.data() + i, kQuad, column + i * width);
  }
}

template <bool kAmx>
void int8_conv(Context& context, const ConvShape& shape, const Int8Operands& operands) {
  const Kernels& kernels = context.kernels();
  const Int8Input& x = operands.x;
  const int64_t channels = operands.weights->channels(), columns = kernels.gemm_u8s8.columns;
  DT_CHECK(!x.bytes || channels == shape.c, "int8 convolution: bytes of ", shape.c,
           " channels, expected a multiple of ", kQuad);
  // Bytes are read where they are.
  const PaddedImages<uint8_t> images(
      context, shape, channels, {x.bytes, x.zero, !x.bytes}, [&](int64_t row, uint8_t* to) {
        quantize_row(kernels.gemm_u8s8, shape, x, x.floats + row * shape.w * shape.c, channels, to);
      });
  if constexpr (kAmx) {
    parallel_amx_gemm<uint8_t>(
        context, images.view(), OutputLayout::in_order(shape), x.zero, operands.weights->packed(), columns,
        [&](const AmxGemm<uint8_t>& rows, int64_t panel, int64_t) {
          const int64_t column = panel * columns;
          kernels.amx.u8s8(rows, requantize_from(operands.epilogue, column, column), output_from(operands.y, column));
        });
  } else {
    const Scratch<uint8_t> zeros(context, shape.s * channels);
    std::fill_n(zeros.data(), shape.s * channels, x.zero);
    gemm(context, images.view().matrix(zeros.data()), operands.weights->packed(), operands.epilogue, operands.y,
         shape.k);
  }
}

template void int8_conv<false>(Context&, const ConvShape&, const Int8Operands&);
template void int8_conv<true>(Context&, const ConvShape&, const Int8Operands&);

}  // namespace dtrain::cpu
