#include "libdtrain/cpu/conv/winograd.h"

#include <algorithm>
#include <vector>

#include "dtrain/core/context.h"
#include "libdtrain/cpu/conv/winograd_conv.h"
#include "libdtrain/cpu/gemm/prefetch_schedule.h"
#include "libdtrain/cpu/gemm/statistics.h"
#include "libdtrain/cpu/kernels/table.h"
#include "libdtrain/cpu/threads/scratch.h"
#include "libdtrain/cpu/threads/work_stealing.h"

namespace dtrain::cpu {
namespace {

// Tiles that a thread takes through all phases at once: transformed, with their products, they stay in its own cache.
// More tiles share each panel where panels come from the shared cache or from memory.
constexpr int64_t kTilesPerThread = 24, kTilesPerThreadBeyondL2 = 48;
// Where tiles outweigh weights: each thread takes groups of tiles through all phases, so that they stay in its own
// cache, and the weights in the shared one.
template <class T>
void convolve_by_tiles(Context& context, const WinogradConv<T>& conv, const float* panels) {
  const int64_t count = conv.tiles.count, threads = context.threads();
  const int64_t at_once = threads * (conv.panels_exceed_l2() ? kTilesPerThreadBeyondL2 : kTilesPerThread);
  const int64_t rounds = (count + at_once - 1) / at_once;
  const int64_t most = (count + threads * rounds - 1) / (threads * rounds);  // equal shares
  const Scratch<float> scratch(context, threads * conv.scratch_floats(most));
  const ChunkedRange chunks(context.threads(), (count + most - 1) / most, 1);
  parallel_chunks(chunks, [&](int64_t thread, int64_t chunk, int64_t first_group, int64_t end_group) {
    float* const inputs = scratch.data() + thread * conv.scratch_floats(most);
    float* const products = inputs + conv.input_floats(most);
    const int64_t end = std::min(end_group * most, count);
    for (int64_t first = first_group * most; first < end; first += most) {
      const int64_t group = std::min(most, end - first);
      for (int64_t t = 0; t < group; ++t) conv.transform(first + t, t, inputs);
      const TwoRangeSchedule next = conv.prefetch_of(first, group, std::min(first + group + most, end));
      int64_t part = 0;
      for (int64_t point = 0; point < kWinogradPoints; ++point)
        for (int64_t outer = 0; outer < conv.y.c; outer += conv.columns(), ++part)
          conv.multiply(group, point, outer, inputs, panels, products, next[part]);
      for (int64_t t = 0; t < group; ++t) conv.finish(chunk, first + t, products + t * tile_stride(conv.y.c));
    }
  });
}

// Both are called by all threads of a parallel region, which share the work.
template <class T>
void multiply_by_panels(const WinogradConv<T>& conv, const float* panels, const float* inputs, float* products) {
  const int64_t width = conv.columns(), panels_per_point = conv.y.c / width;
#pragma omp for schedule(dynamic)
  for (int64_t item = 0; item < kWinogradPoints * panels_per_point; ++item)
    conv.multiply(conv.tiles.count, item / panels_per_point, item % panels_per_point * width, inputs, panels, products,
                  {});
}

// Each panel is used while it is in the cache of the thread that transformed it.
template <class T>
void multiply_by_panels(const WinogradConv<T>& conv, const WeightTransform<T>& weights, const float* inputs,
                        float* products) {
  const int64_t width = conv.kernels.gemm.columns, point_step = pad_by_cache_line(kFusedTransformDepth * width);
  std::vector<float> panels(static_cast<size_t>(kWinogradPoints * point_step));
#pragma omp for schedule(dynamic)
  for (int64_t outer = 0; outer < conv.y.c; outer += width)
    for (int64_t depth = 0; depth < conv.x.c; depth += kFusedTransformDepth) {
      const int64_t depths = std::min(kFusedTransformDepth, conv.x.c - depth);
      weights.transform(outer, depth, depths, panels.data(), point_step);
      for (int64_t point = 0; point < kWinogradPoints; ++point)
        conv.multiply(conv.tiles.count, point, outer, width, depth, depths, inputs, panels.data() + point * point_step,
                      0, products, conv.inputs_after(point, depth, inputs));
    }
}

// Where weights outweigh tiles: the threads share each phase of all tiles, so that each panel is read once. `weights`:
// as the overloads of multiply_by_panels take them.
template <class T, class Weights>
void convolve_by_panels(Context& context, const WinogradConv<T>& conv, const Weights& weights) {
  const int64_t count = conv.tiles.count;
  const Scratch<float> scratch(context, conv.scratch_floats(count));
  float* const inputs = scratch.data();
  float* const products = inputs + conv.input_floats(count);
#pragma omp parallel num_threads(context.threads())
  {
#pragma omp for schedule(static)
    for (int64_t t = 0; t < count; ++t) conv.transform(t, t, inputs);
    multiply_by_panels(conv, weights, inputs, products);
#pragma omp for schedule(static)  // static: each thread always adds up the same tiles
    for (int64_t t = 0; t < count; ++t) conv.finish(omp_get_thread_num(), t, products + t * tile_stride(conv.y.c));
  }
}

// `packed`: the transformed weights. Null: they are transformed in this call, panel by panel where each is used once
// and there are enough of them to occupy the threads, else before.
template <class T>
void convolve(Context& context, const WinogradSource<T>& x, const WinogradFilters<T>& w, const Tensor* packed,
              int64_t n, const Output<T>& y) {
  const Tensor zero_pixel = context.zeros({x.c}, dtype_of<T>());
  const WinogradConv<T> conv{context.kernels(), {n, y.h, y.w}, x, y, zero_pixel.data<T>()};
  const WeightTransform<T> weights{context.kernels(), w};
  const bool many_panels = y.c / context.kernels().gemm.columns >= 2 * context.threads();
  if (!packed && many_panels && !conv.by_tiles) return convolve_by_panels(context, conv, weights);
  const Tensor panels = packed ? *packed : transform_weights(context, weights, x.c, y.c);
  if (conv.by_tiles)
    convolve_by_tiles(context, conv, panels.data<float>());
  else
    convolve_by_panels(context, conv, panels.data<float>());
}

template <class T>
WinogradFilters<T> forward_weights(int64_t c, const T* w) {
  return {w, 9 * c, c, 1, false, nullptr, 0};
}

}  // namespace

Verdict winograd_verdict(const Context& context, const ConvShape& o, int64_t min_tiles) {
  const bool is_3x3 = o.r == 3 && o.s == 3 && o.stride_h == 1 && o.stride_w == 1 && o.dilation_h == 1 &&
                      o.dilation_w == 1 && o.groups == 1;
  if (!is_3x3) return Verdict::unsupported("for 3x3 kernels of stride 1 and one group");
  const int64_t width = context.kernels().gemm.columns;
  if (o.c % width != 0 || o.k % width != 0) return Verdict::unsupported(kPartialPanels);
  if (o.pad_top > 2 || o.pad_left > 2) return Verdict::unsupported("for a padding of at most 2");
  const WinogradTiles tiles(o.n, o.p, o.q);
  const bool inside = 2 * o.n * o.p * o.q >= kWinogradOut * kWinogradOut * tiles.count;
  const bool pays = o.c * o.k >= 2048 && inside && tiles.count >= min_tiles;
  return pays ? Verdict{} : Verdict::slower("too few tiles or channels for the transforms");
}

Tensor winograd_weights(Context& context, int64_t c, int64_t k, const float* w) {
  return transform_weights<float>(context, {context.kernels(), forward_weights(c, w)}, c, k);
}

template <class T>
void Winograd<T>::forward(Context& context, const ConvShape& o, const ConvOperands<T>& a) {
  convolve<T>(context, {a.x, o.h, o.w, o.c, o.pad_top, o.pad_left}, forward_weights(o.c, a.w), nullptr, o.n,
              {a.y, o.p, o.q, o.k, {.bias = a.bias}, a.statistics});
}

template <class T>
void Winograd<T>::inference(Context& context, const ConvShape& o, const InferenceOperands<T>& a) {
  convolve<T>(context, {a.x, o.h, o.w, o.c, o.pad_top, o.pad_left}, {}, &a.weights->winograd(context), o.n,
              {a.y, o.p, o.q, o.k, a.epilogue});
}

// The forward algorithm with rotated and transposed weights.
template <class T>
void Winograd<T>::dgrad(Context& context, const ConvShape& o, const ConvOperands<T>& a) {
  const WinogradFilters<T> rotated{a.w, 1, o.c, 9 * o.c, true, nullptr, 0};
  convolve<T>(context, {a.dy, o.p, o.q, o.k, 2 - o.pad_top, 2 - o.pad_left}, rotated, nullptr, o.n,
              {a.dx, o.h, o.w, o.c, {.residual = a.add ? a.dx : nullptr}});
}

template struct Winograd<float>;
template struct Winograd<Bf16>;

}  // namespace dtrain::cpu
