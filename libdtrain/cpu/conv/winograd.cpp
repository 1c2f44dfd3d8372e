#include "libdtrain/cpu/conv/winograd.h"

#include <algorithm>
#include <vector>

#include "libdtrain/core/context.h"
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
constexpr int64_t kTilesPerThread = 24, kTilesOfFarPanels = 48;
// Where tiles outweigh weights: each thread takes groups of tiles through all phases, so that they stay in its own
// cache, and the weights in the shared one.
template <class T>
void convolve_by_tiles(Context& context, const WinogradConv<T>& conv, const float* panels) {
  const int64_t count = conv.tiles.count, threads = context.threads();
  const int64_t at_once = threads * (conv.far_panels() ? kTilesOfFarPanels : kTilesPerThread);
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
  const int64_t width = conv.kernels.gemm.columns, point_step = winograd_spread(kFreshDepth * width);
  std::vector<float> panels(static_cast<size_t>(kWinogradPoints * point_step));
#pragma omp for schedule(dynamic)
  for (int64_t outer = 0; outer < conv.y.c; outer += width)
    for (int64_t depth = 0; depth < conv.x.c; depth += kFreshDepth) {
      const int64_t depths = std::min(kFreshDepth, conv.x.c - depth);
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

template <class T>
void convolve(Context& context, const WinogradSource<T>& x, const Tensor& panels, int64_t n, const Output<T>& y) {
  const Tensor zero_pixel = context.zeros({x.c}, dtype_of<T>());
  const WinogradConv<T> conv{context.kernels(), {n, y.h, y.w}, x, y, zero_pixel.data<T>()};
  if (conv.by_tiles)
    convolve_by_tiles(context, conv, panels.data<float>());
  else
    convolve_by_panels(context, conv, panels.data<float>());
}

// Transforms the weights in this call: panel by panel where each is used once and there are enough of them to occupy
// the threads, else before.
template <class T>
void convolve(Context& context, const WinogradSource<T>& x, const WinogradFilters<T>& w, int64_t n,
              const Output<T>& y) {
  const Tensor zero_pixel = context.zeros({x.c}, dtype_of<T>());
  const WinogradConv<T> conv{context.kernels(), {n, y.h, y.w}, x, y, zero_pixel.data<T>()};
  const WeightTransform<T> weights{context.kernels(), w};
  const bool many_panels = y.c / context.kernels().gemm.columns >= 2 * context.threads();
  if (many_panels && !conv.by_tiles) return convolve_by_panels(context, conv, weights);
  convolve(context, x, transform_weights(context, weights, x.c, y.c), n, y);
}

template <class T>
WinogradFilters<T> forward_weights(int64_t c, const T* w) {
  return {w, 9 * c, c, 1, false, nullptr, 0};
}

}  // namespace

bool winograd_supports(const Context& context, const WinogradShape& s) {
  const int64_t width = context.kernels().gemm.columns;
  return s.c % width == 0 && s.k % width == 0 && s.c > 0 && s.k > 0 && s.pad_top <= 2 && s.pad_left <= 2;
}

bool winograd_pays(const WinogradShape& s, int64_t min_tiles) {
  const int64_t tiles = ((s.p + kWinogradOut - 1) / kWinogradOut) * ((s.q + kWinogradOut - 1) / kWinogradOut);
  return s.c * s.k >= 2048 && 2 * s.p * s.q >= kWinogradOut * kWinogradOut * tiles && s.n * tiles >= min_tiles;
}

std::optional<WinogradShape> winograd_shape(const ConvShape& o) {
  const bool fits = o.r == 3 && o.s == 3 && o.stride_h == 1 && o.stride_w == 1 && o.dilation_h == 1 &&
                    o.dilation_w == 1 && o.groups == 1;
  if (!fits) return std::nullopt;
  return WinogradShape{o.n, o.h, o.w, o.c, o.k, o.p, o.q, o.pad_top, o.pad_left};
}

template <class T>
Tensor winograd_weights(Context& context, int64_t c, int64_t k, const T* w) {
  return transform_weights<T>(context, {context.kernels(), forward_weights(c, w)}, c, k);
}

template <class T>
void winograd_forward(Context& context, const WinogradShape& s, const T* x, const Tensor& weights,
                      const std::type_identity_t<Epilogue<T>>& epilogue, T* y) {
  convolve<T>(context, {x, s.h, s.w, s.c, s.pad_top, s.pad_left}, weights, s.n, {y, s.p, s.q, s.k, epilogue});
}

template <class T>
void winograd_forward(Context& context, const WinogradShape& s, const T* x, const T* w, const float* bias, T* y,
                      FusedStatistics* statistics) {
  convolve<T>(context, {x, s.h, s.w, s.c, s.pad_top, s.pad_left}, forward_weights(s.c, w), s.n,
              {y, s.p, s.q, s.k, {.bias = bias}, statistics});
}

template <class T>
void winograd_dgrad(Context& context, const WinogradShape& s, const T* dy, const T* w, T* dx, bool add) {
  const WinogradFilters<T> rotated{w, 1, s.c, 9 * s.c, true, nullptr, 0};
  convolve<T>(context, {dy, s.p, s.q, s.k, 2 - s.pad_top, 2 - s.pad_left}, rotated, s.n,
              {dx, s.h, s.w, s.c, {.residual = add ? dx : nullptr}});
}

template Tensor winograd_weights(Context&, int64_t, int64_t, const float*);
template void winograd_forward(Context&, const WinogradShape&, const float*, const Tensor&, const Epilogue<float>&,
                               float*);
template void winograd_forward(Context&, const WinogradShape&, const float*, const float*, const float*, float*,
                               FusedStatistics*);
template void winograd_dgrad(Context&, const WinogradShape&, const float*, const float*, float*, bool);
template Tensor winograd_weights(Context&, int64_t, int64_t, const Bf16*);
template void winograd_forward(Context&, const WinogradShape&, const Bf16*, const Tensor&, const Epilogue<Bf16>&,
                               Bf16*);
template void winograd_forward(Context&, const WinogradShape&, const Bf16*, const Bf16*, const float*, Bf16*,
                               FusedStatistics*);
template void winograd_dgrad(Context&, const WinogradShape&, const Bf16*, const Bf16*, Bf16*, bool);

}  // namespace dtrain::cpu
