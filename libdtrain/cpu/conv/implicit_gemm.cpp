#include "libdtrain/cpu/conv/implicit_gemm.h"

#include <algorithm>

#include "libdtrain/cpu/conv/amx_gemm.h"
#include "libdtrain/cpu/conv/dgrad_phases.h"
#include "libdtrain/cpu/conv/im2col.h"
#include "libdtrain/cpu/gemm/blocking.h"
#include "libdtrain/cpu/gemm/gemm.h"
#include "libdtrain/cpu/kernels/table.h"

namespace dtrain::cpu {
namespace {

// `c` and `channels` are compile-time constants where it matters.
template <class T>
[[gnu::always_inline]] inline void widen(const T* from, int64_t count, int64_t c, int64_t channels, T* to) {
  for (int64_t i = 0; i < count; ++i, from += c, to += channels) {
    for (int64_t j = 0; j < c; ++j) to[j] = from[j];
    for (int64_t j = c; j < channels; ++j) to[j] = T{};
  }
}

// Copies `count` pixels of c channels to pixels of `channels`, zeros beyond c.
template <class T>
void widen_pixels(const T* from, int64_t count, int64_t c, int64_t channels, T* to) {
  if (channels == c)
    std::copy_n(from, count * c, to);
  else if (c == 3 && channels == 4)  // colours
    widen(from, count, 3, 4, to);
  else
    widen(from, count, c, channels, to);
}

std::vector<int64_t> offsets_of_pixels(const ConvShape& o, const OutputLayout& layout) {
  std::vector<int64_t> offsets;
  offsets.reserve(static_cast<size_t>(o.n * o.p * o.q));
  for (int64_t image = 0; image < o.n; ++image)
    for (int64_t i = 0; i < o.p; ++i)
      for (int64_t j = 0; j < o.q; ++j)
        offsets.push_back(layout.first + image * layout.image + i * layout.row + j * layout.pixel);
  return offsets;
}

}  // namespace

template <class T>
void pack_weights(Context& context, const ConvShape& o, const T* w, T* packed) {
  const int64_t channels = round_up_to_pack<T>(o.c), pixels = o.k * o.r * o.s;
  const Scratch<T> widened(context, channels == o.c ? 0 : pixels * channels);
  if (channels != o.c) widen_pixels(w, pixels, o.c, channels, widened.data());
  pack_transposed(context, o.k, o.r * o.s * channels, channels == o.c ? w : widened.data(), packed);
}

template <class T>
void implicit_gemm(Context& context, const ConvShape& shape, const T* x, const T* packed_w, const Epilogue<T>& epilogue,
                   T* y, bool use_amx, FusedStatistics* statistics, bool may_bypass_caches) {
  const int64_t channels = round_up_to_pack<T>(shape.c);
  const PaddedImages<T> images(context, shape, channels, {x, T{}}, [&](int64_t row, T* to) {
    widen_pixels(x + row * shape.w * shape.c, shape.w, shape.c, channels, to);
  });
  const int64_t panel = context.kernels().gemm.columns;
  const bool past_caches =
      may_bypass_caches && stores_past_caches(shape.n * shape.p * shape.q * shape.k, shape.k, panel, y);
  if constexpr (std::is_same_v<T, Bf16>)
    if (use_amx)
      return amx_implicit_gemm(context, taps_of(images.shape(), images.merged()), images.data(), packed_w, epilogue, y,
                               past_caches, statistics);
  const Tensor zeros = context.zeros({shape.s * channels}, dtype_of<T>());
  gemm(context, images.matrix(zeros.data<T>()), packed_w, epilogue,
       {.data = y, .n = shape.k, .non_temporal = past_caches && non_temporal_stores_pay()}, statistics);
}

template <class T>
void implicit_gemm_dgrad(Context& context, const ConvShape& o, const T* dy, const T* w, T* dx, bool add, bool use_amx) {
  const Tensor zeros = context.zeros({o.k}, dtype_of<T>());
  const Epilogue<T> epilogue{.residual = add ? dx : nullptr};
  for_each_phase<T>(context, o, w, dx, add, [&](const DgradPhase& phase, const T* packed_w) {
    if constexpr (std::is_same_v<T, Bf16>)
      if (use_amx) {
        TapConv conv = taps_of(phase.conv);
        conv.layout = phase.layout;
        return amx_implicit_gemm(context, conv, dy, packed_w, epilogue, dx, false);
      }
    MatrixC<T> c{.data = dx, .n = o.c};
    if (phase.layout == OutputLayout::in_order(phase.conv))
      c.non_temporal = stores_past_caches(o.n * o.h * o.w * o.c, o.c, context.kernels().gemm.columns, dx) &&
                       non_temporal_stores_pay();
    else
      c.row_offsets = offsets_of_pixels(phase.conv, phase.layout);
    gemm(context, im2col(phase.conv, dy, zeros.data<T>()), packed_w, epilogue, c);
  });
}

template void pack_weights(Context&, const ConvShape&, const float*, float*);
template void pack_weights(Context&, const ConvShape&, const Bf16*, Bf16*);
template void implicit_gemm(Context&, const ConvShape&, const float*, const float*, const Epilogue<float>&, float*,
                            bool, FusedStatistics*, bool);
template void implicit_gemm(Context&, const ConvShape&, const Bf16*, const Bf16*, const Epilogue<Bf16>&, Bf16*, bool,
                            FusedStatistics*, bool);
template void implicit_gemm_dgrad(Context&, const ConvShape&, const float*, const float*, float*, bool, bool);
template void implicit_gemm_dgrad(Context&, const ConvShape&, const Bf16*, const Bf16*, Bf16*, bool, bool);

}  // namespace dtrain::cpu
