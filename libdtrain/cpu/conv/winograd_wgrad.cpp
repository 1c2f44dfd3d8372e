#include <algorithm>
#include <vector>

#include "dtrain/core/context.h"
#include "libdtrain/cpu/conv/winograd.h"
#include "libdtrain/cpu/conv/winograd_tiles.h"
#include "libdtrain/cpu/gemm/prefetch_schedule.h"
#include "libdtrain/cpu/kernels/table.h"
#include "libdtrain/cpu/threads/scratch.h"
#include "libdtrain/cpu/threads/work_stealing.h"

namespace dtrain::cpu {
namespace {

// Tiles that a thread transforms and multiplies at once: transformed, they stay in its own cache, and there are enough
// of them for the GEMM to pay for reading and writing the sums.
constexpr int64_t kTilesPerThread = 64;
// Tiles in a GEMM: a panel of this depth stays in the first-level cache.
constexpr int64_t kDepth = 256;
// Output channels whose sums a thread computes at all points and then transforms: they stay in the second-level cache.
constexpr int64_t kFusedTransformChannels = 128;

// The transformed tiles of a group as packed panels: [point][channel / width][tile][width].
struct TilePanels {
  float* data;
  int64_t group;   // tiles
  int64_t stride;  // floats from one point to the next
  int64_t width;

  float* at(int64_t point, int64_t panel, int64_t tile) const {
    return data + point * stride + (panel * group + tile) * width;
  }
  WinogradTileLayout place(int64_t tile) const { return {at(0, 0, tile), stride, width, group * width}; }
};

// For each point, u [k][c] = dy^T * x over the transformed tiles of both.
template <class T>
struct WinogradWgrad {
  const Kernels& kernels;
  const ConvShape& shape;
  WinogradTiles tiles;
  WinogradSource<T> x, dy;
  const T* zeros;  // a pixel of padding
  int64_t width = kernels.gemm.columns;
  int64_t panels = shape.c % (kernels.gemm.panels * width) > 0 ? 1 : kernels.gemm.panels;  // of x, in a micro-kernel
  int64_t wide = panels * width;

  struct Group {
    TilePanels inputs, gradients;
  };
  // Scratch memory of `count` transformed tiles.
  int64_t scratch_floats(int64_t count) const {
    return kWinogradPoints * (pad_by_cache_line(count * shape.c) + pad_by_cache_line(count * shape.k));
  }
  Group group_at(float* scratch, int64_t count) const {
    const int64_t x_step = pad_by_cache_line(count * shape.c), dy_step = pad_by_cache_line(count * shape.k);
    return {{scratch, count, x_step, width}, {scratch + kWinogradPoints * x_step, count, dy_step, width}};
  }
  // Transforms tile `t`, which is number `place` of the group.
  void transform(int64_t t, const Group& group, int64_t place) const {
    const WinogradTransforms<T>& transforms = kernels.winograd.of<T>();
    transforms.input_tile(x.window(tiles, t, zeros), shape.c, group.inputs.place(place));
    transforms.gradient_tile(dy.window(tiles, t, zeros), shape.k, group.gradients.place(place));
  }
  // The images under tiles [begin, end), to be prefetched during the GEMMs at all points.
  TwoRangeSchedule prefetch_of(int64_t begin, int64_t end) const {
    const int64_t half = kWinogradPoints / 2 * (shape.c / wide) * (shape.k / width);
    return {PrefetchSchedule(dy.rows_of(tiles, begin, end), half), PrefetchSchedule(x.rows_of(tiles, begin, end), half),
            half};
  }
  // The panel of gradients after panel k, of those before `last`.
  PrefetchRange panel_after(const Group& group, int64_t point, int64_t k, int64_t last) const {
    const int64_t floats = k + 1 < last ? group.gradients.group * width : 0;
    return {group.gradients.at(point, k + 1, 0), floats * static_cast<int64_t>(sizeof(float))};
  }
  // Stores or adds the block [width][wide] of u of panel k of dy and the panels from number c * panels on of x.
  void multiply(const Group& group, int64_t point, int64_t k, int64_t c, float* u, int64_t u_stride, bool add,
                const PrefetchRange& next) const {
    for (int64_t t = 0; t < group.inputs.group; t += kDepth) {
      const int64_t depth = std::min(kDepth, group.inputs.group - t);
      kernels.gemm.transposed_a({.rows = width,
                                 .k = depth,
                                 .a = group.gradients.at(point, k, t),
                                 .a_stride = width,
                                 .b = group.inputs.at(point, c * panels, t),
                                 .b_stride = width,
                                 .y = u,
                                 .y_stride = u_stride,
                                 .add = add || t > 0,
                                 .panels = panels,
                                 .panel_step = group.inputs.group * width,
                                 .prefetch = t > 0 ? PrefetchRange{} : next});
    }
  }
};

// Where tiles outweigh the sums of all threads by far: each thread sums its own tiles, which stay in its cache from the
// transforms to the GEMMs. The sums of the chunks are added at the end, in their order.
template <class T>
void wgrad_by_tiles(Context& context, const WinogradWgrad<T>& gradient, float* dw, bool add) {
  const int64_t c = gradient.shape.c, k = gradient.shape.k, width = gradient.width, wide = gradient.wide;
  const int64_t threads = context.threads(), count = gradient.tiles.count;
  const int64_t most = std::min(kTilesPerThread, (count + threads - 1) / threads);
  const int64_t u_floats = pad_by_cache_line(kWinogradPoints * c * k);
  const ChunkedRange chunks(context.threads(), count, std::max<int64_t>(c * k / (c + k), 1));
  const Scratch<float> scratch(context, threads * gradient.scratch_floats(most)),
      sums(context, chunks.count() * u_floats);
  parallel_chunks(chunks, [&](int64_t thread, int64_t chunk, int64_t begin, int64_t end) {
    float* const u = sums.data() + chunk * u_floats;
    for (int64_t first = begin; first < end; first += most) {
      const int64_t tiles = std::min(most, end - first);
      const auto group = gradient.group_at(scratch.data() + thread * gradient.scratch_floats(most), tiles);
      for (int64_t t = 0; t < tiles; ++t) gradient.transform(first + t, group, t);
      const TwoRangeSchedule next = gradient.prefetch_of(first + tiles, std::min(first + tiles + most, end));
      int64_t part = 0;
      for (int64_t point = 0; point < kWinogradPoints; ++point)
        for (int64_t i = 0; i < c / wide; ++i)
          for (int64_t o = 0; o < k / width; ++o, ++part)
            gradient.multiply(group, point, o, i, u + (point * k + o * width) * c + i * wide, c, first > begin,
                              next[part]);
    }
  });
  parallel_parts(context, k, [&](int, int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o) {
      for (int64_t point = 0; point < kWinogradPoints; ++point) {
        float* const u = sums.data() + (point * k + o) * c;
        for (int64_t chunk = 1; chunk < chunks.count(); ++chunk)
          for (int64_t i = 0; i < c; ++i) u[i] += u[chunk * u_floats + i];
      }
      gradient.kernels.winograd.filter_gradient({sums.data() + o * c, k * c, c, dw + o * 9 * c, c, add});
    }
  });
}

// Where the sums outweigh tiles: the threads share the transforms of all tiles, and then the sums, each of which is
// transformed while it is in the cache of the thread that computed it.
template <class T>
void wgrad_by_panels(Context& context, const WinogradWgrad<T>& gradient, float* dw, bool add) {
  const int64_t c = gradient.shape.c, k = gradient.shape.k, width = gradient.width, wide = gradient.wide;
  const int64_t count = gradient.tiles.count;
  const Scratch<float> scratch(context, gradient.scratch_floats(count));
  const auto group = gradient.group_at(scratch.data(), count);
  const int64_t channels = std::min(kFusedTransformChannels / gradient.panels, k),
                point_step = pad_by_cache_line(channels * wide);
  const int64_t blocks = (k + channels - 1) / channels;
#pragma omp parallel num_threads(context.threads())
  {
#pragma omp for schedule(static)
    for (int64_t t = 0; t < count; ++t) gradient.transform(t, group, t);
    std::vector<float> u(static_cast<size_t>(kWinogradPoints * point_step));  // [point][k of the block][wide]
#pragma omp for schedule(dynamic)
    for (int64_t item = 0; item < c / wide * blocks; ++item) {
      const int64_t i = item / blocks, first = item % blocks * channels, end = std::min(first + channels, k);
      for (int64_t point = 0; point < kWinogradPoints; ++point)
        for (int64_t o = 0; o < (end - first) / width; ++o)
          gradient.multiply(group, point, first / width + o, i, u.data() + point * point_step + o * width * wide, wide,
                            false, gradient.panel_after(group, point, first / width + o, end / width));
      for (int64_t o = first; o < end; ++o)
        gradient.kernels.winograd.filter_gradient(
            {u.data() + (o - first) * wide, point_step, wide, dw + o * 9 * c + i * wide, c, add});
    }
  }
}

}  // namespace

template <class T>
void Winograd<T>::wgrad(Context& context, const ConvShape& o, const ConvOperands<T>& a) {
  const Tensor zero_pixel = context.zeros({std::max(o.c, o.k)}, dtype_of<T>());
  const WinogradWgrad<T> gradient{
      context.kernels(),   o, {o.n, o.p, o.q}, {a.x, o.h, o.w, o.c, o.pad_top, o.pad_left}, {a.dy, o.p, o.q, o.k, 0, 0},
      zero_pixel.data<T>()};
  if (gradient.tiles.outweigh_weights(o.c, o.k, 2 * context.threads()))
    wgrad_by_tiles(context, gradient, a.dw, a.add);
  else
    wgrad_by_panels(context, gradient, a.dw, a.add);
}

template void Winograd<float>::wgrad(Context&, const ConvShape&, const ConvOperands<float>&);
template void Winograd<Bf16>::wgrad(Context&, const ConvShape&, const ConvOperands<Bf16>&);

}  // namespace dtrain::cpu
