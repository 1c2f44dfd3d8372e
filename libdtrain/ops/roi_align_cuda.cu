// CUDA kernels of RoIAlign.
//
// Forward: one thread per pack of channels of a cell: 16 loads of 16 bytes at sampling ratio 2, shared with
// neighbouring cells through the caches. 1024 regions of 7 x 7 cells and 256 channels in 16 bits read 0.4 GB from L2
// and write 26 MB.
//
// Backward: gather, without atomics, in the order of additions of the CPU. A block owns a tile of a map (8 x 8 pixels
// by four packs of channels): it lists the regions that touch the tile, computes their row and column weights in
// batches, and each thread accumulates its pack of its pixel. A pixel reads only cells that contain it, so the traffic
// does not exceed the forward pass; in addition each block reads all regions (24 KB per 1024; 120 MB from L2 for a map
// of 120 x 160 x 256 in 16 bits). Each pixel is written once. With many regions on a map of few tiles, the longest list
// dominates: an estimated microsecond per eight regions.
#include <cmath>

#include "dtrain/ops/roi_align.h"
#include "libdtrain/core/divisor.h"
#include "libdtrain/cuda/kernels.cuh"
#include "libdtrain/ops/roi_align_kernels.h"
#include "libdtrain/ops/roi_align_math.h"

namespace dtrain::cuda {
namespace {

constexpr int kWarps = kThreads / kWarp;
constexpr int kTile = 8;                            // rows and columns per tile
constexpr int kPacks = kThreads / (kTile * kTile);  // per block and pixel
constexpr int kMostBatch = 8;                       // regions per batch of weights
constexpr size_t kMostWeightBytes = 40 << 10;       // of a batch
[[maybe_unused]] constexpr int kBlocks = 4;         // resident per multiprocessor: limits registers

template <class T>
struct RoiMap {
  T* data;  // null: no gradient needed
  int height, width;
  float scale;
  int64_t first_tile;  // index of the map's first tile among all
  bool add;

  __device__ int tiles_across() const { return (width + kTile - 1) / kTile; }
};

template <class T>
struct RoiMaps {
  RoiMap<T> map[kMostRoiMaps];
  int count;
  int64_t images, channels;
};

// Regions and their geometry.
struct Regions {
  const float* rois;
  const int32_t *images, *levels;  // levels may be null
  int64_t count;
  int height, width, sampling_ratio;
  bool aligned;

  Regions(const Tensor& roi, const Tensor& image, const Tensor& level, const RoiAlignOptions& o)
      : rois(roi.data<float>()),
        images(image.data<int32_t>()),
        levels(level ? level.data<int32_t>() : nullptr),
        count(roi.dim(0)),
        height(o.height),
        width(o.width),
        sampling_ratio(o.sampling_ratio),
        aligned(o.aligned) {}
  __device__ int level(int64_t r) const { return levels == nullptr ? 0 : levels[r]; }
  template <class T>
  __device__ RoiAxis rows(int64_t r, const RoiMap<T>& map) const {
    return RoiAxis::of(rois[4 * r + 1], rois[4 * r + 3], map.scale, height, sampling_ratio, aligned, map.height);
  }
  template <class T>
  __device__ RoiAxis columns(int64_t r, const RoiMap<T>& map) const {
    return RoiAxis::of(rois[4 * r], rois[4 * r + 2], map.scale, width, sampling_ratio, aligned, map.width);
  }
};

template <class T, int n>
__device__ void add_scaled(float (&sum)[n], float weight, const Pack<T, n>& x) {
#pragma unroll
  for (int i = 0; i < n; ++i) sum[i] += weight * to_float(x.lane[i]);
}

// sum += samples of a cell, from `x`, a pack of the image's first pixel
template <class T, int n>
__device__ void add_cell(const RoiAxis& rows, const RoiAxis& columns, int row, int column, const T* x, int64_t channels,
                         float (&sum)[n]) {
  const int64_t stride = columns.pixels * channels;
  for (int i = 0; i < rows.grid; ++i) {
    const RoiTap h = roi_tap(rows.at(row, i), rows.pixels);
    if (!h.inside) continue;
    const T *const low = x + h.low * stride, *const high = x + h.high * stride;
    for (int j = 0; j < columns.grid; ++j) {
      const RoiTap w = roi_tap(columns.at(column, j), columns.pixels);
      if (!w.inside) continue;
      const int64_t left = w.low * channels, right = w.high * channels;
      const auto a = load<T, n>(low + left), b = load<T, n>(low + right);
      const auto c = load<T, n>(high + left), d = load<T, n>(high + right);
      add_scaled(sum, h.low_weight * w.low_weight, a);
      add_scaled(sum, h.low_weight * w.high_weight, b);
      add_scaled(sum, h.high_weight * w.low_weight, c);
      add_scaled(sum, h.high_weight * w.high_weight, d);
    }
  }
}

template <class T, int n>
__global__ void __launch_bounds__(kThreads) roi_align_kernel(RoiMaps<const T> maps, Regions regions, Divisor per_cell,
                                                             Divisor columns, Divisor rows, uint32_t count, T* y) {
  for (uint32_t i = blockIdx.x * kThreads + threadIdx.x; i < count; i += gridDim.x * kThreads) {
    uint32_t rest = i;
    const int64_t channel = int64_t{n} * per_cell.split(rest);
    const auto column = static_cast<int>(columns.split(rest)), row = static_cast<int>(rows.split(rest));
    const int64_t r = rest;
    const int image = regions.images[r], level = image < 0 ? 0 : regions.level(r);
    float sum[n] = {};
    if (image >= maps.images || level < 0 || level >= maps.count) {
#pragma unroll
      for (int lane = 0; lane < n; ++lane) sum[lane] = NAN;
    } else if (image >= 0) {
      const RoiMap<const T> map = maps.map[level];
      const RoiAxis hs = regions.rows(r, map), ws = regions.columns(r, map);
      add_cell(hs, ws, row, column, map.data + int64_t{image} * map.height * map.width * maps.channels + channel,
               maps.channels, sum);
      const float factor = roi_factor(hs, ws);
#pragma unroll
      for (int lane = 0; lane < n; ++lane) sum[lane] *= factor;
    }
    store(y + int64_t{i} * n, packed<T>(sum));
  }
}

// Tile of an image's map.
struct Tile {
  int level, image, top, left;
};

template <class T>
__device__ Tile tile_of(const RoiMaps<T>& maps, int64_t number) {
  int level = 0;
  while (level + 1 < maps.count && number >= maps.map[level + 1].first_tile) ++level;
  const RoiMap<T>& map = maps.map[level];
  const int across = map.tiles_across(), down = (map.height + kTile - 1) / kTile;
  const auto within = static_cast<int>(number - map.first_tile);
  return {level, within / (across * down), within / across % down * kTile, within % across * kTile};
}

// Conservative test whether samples of the axis touch the tile's pixels from `first` on.
__device__ bool may_touch(const RoiAxis& axis, int cells, int first) {
  const float end = axis.start + static_cast<float>(cells) * axis.cell;
  const float low = fminf(axis.start, end), high = fmaxf(axis.start, end);
  return high + 2 >= static_cast<float>(first) && low - 1 <= static_cast<float>(first + kTile);
}

// Regions from `first` on, at most one per thread, that may touch the tile: indices in order, and their count. Called
// by the whole block after it has read the previous list.
template <class T>
__device__ int find_regions(const Regions& regions, const RoiMaps<T>& maps, const Tile& tile, int64_t first, int* found,
                            int* counts) {
  const int thread = static_cast<int>(threadIdx.x), warp = thread / kWarp, lane = thread % kWarp;
  const int64_t r = first + thread;
  bool hit = r < regions.count && regions.images[r] == tile.image && regions.level(r) == tile.level;
  if (hit) {
    const RoiMap<T>& map = maps.map[tile.level];
    hit = may_touch(regions.rows(r, map), regions.height, tile.top) &&
          may_touch(regions.columns(r, map), regions.width, tile.left);
  }
  const unsigned hits = __ballot_sync(0xffffffffu, hit);
  if (lane == 0) counts[warp] = __popc(hits);
  __syncthreads();
  int before = __popc(hits & ((1u << lane) - 1)), total = 0;
  for (int i = 0; i < kWarps; ++i) {
    if (i < warp) before += counts[i];
    total += counts[i];
  }
  if (hit) found[before] = static_cast<int>(r);
  __syncthreads();
  return total;
}

// Weight of a pixel in a cell, summed over the cell's samples.
__device__ float weight_of(const RoiAxis& axis, int cell, int pixel) {
  float weight = 0;
  for (int i = 0; i < axis.grid; ++i) {
    const RoiTap tap = roi_tap(axis.at(cell, i), axis.pixels);
    if (!tap.inside) continue;
    if (tap.low == pixel) weight += tap.low_weight;
    if (tap.high == pixel && tap.high != tap.low) weight += tap.high_weight;
  }
  return weight;
}

// For each of `count` regions: weights [height][kTile] of the tile's rows, times the factor of the mean, then weights
// [width][kTile] of its columns.
template <class T>
__device__ void find_weights(const Regions& regions, const RoiMap<T>& map, const Tile& tile, const int* found,
                             int count, float* weights) {
  const int cells = regions.height + regions.width;
  for (int i = static_cast<int>(threadIdx.x); i < count * cells * kTile; i += kThreads) {
    const int r = found[i / (cells * kTile)], cell = i / kTile % cells, pixel = i % kTile;
    const RoiAxis rows = regions.rows(r, map), columns = regions.columns(r, map);
    weights[i] = cell < regions.height ? weight_of(rows, cell, tile.top + pixel) * roi_factor(rows, columns)
                                       : weight_of(columns, cell - regions.height, tile.left + pixel);
  }
}

// sum += contributions of a region's cells to a pixel; `dy`: pack of the region's first cell.
template <class T, int n>
__device__ void add_region(const Regions& regions, const float* weights, int row, int column, const T* dy,
                           int64_t channels, float (&sum)[n]) {
  const float *const rows = weights + row, *const columns = weights + regions.height * kTile + column;
#pragma unroll 1
  for (int i = 0; i < regions.height; ++i) {
    const float weight = rows[i * kTile];
    if (weight == 0) continue;
#pragma unroll 1
    for (int j = 0; j < regions.width; ++j)
      if (const float other = columns[j * kTile]; other != 0)
        add_scaled(sum, weight * other, load<T, n>(dy + (i * regions.width + j) * channels));
  }
}

template <class T, int n>
__global__ void __launch_bounds__(kThreads, kBlocks)
    roi_align_grad_kernel(RoiMaps<T> maps, Regions regions, int64_t tiles, int slices, int batch, const T* dy) {
  auto* const found = shared_memory<int>();  // [kThreads], counts [kWarps], weights
  int* const counts = found + kThreads;
  auto* const weights = reinterpret_cast<float*>(counts + kWarps);
  const int pixel = static_cast<int>(threadIdx.x) / kPacks, row = pixel / kTile, column = pixel % kTile;
  const int cells = regions.height + regions.width;
  for (int64_t unit = blockIdx.x; unit < tiles * slices; unit += gridDim.x) {
    // Coarse maps, with the longest lists, first.
    const Tile tile = tile_of(maps, tiles - 1 - unit / slices);
    const RoiMap<T> map = maps.map[tile.level];
    const int64_t channel = (unit % slices * kPacks + threadIdx.x % kPacks) * n;
    const int h = tile.top + row, w = tile.left + column;
    const bool owns = h < map.height && w < map.width && channel < maps.channels;
    T* const to = map.data + ((int64_t{tile.image} * map.height + h) * map.width + w) * maps.channels + channel;
    float sum[n] = {};
    if (owns && map.add) add_scaled(sum, 1.0f, load<T, n>(to));
    for (int64_t first = 0; first < regions.count; first += kThreads) {
      const int total = find_regions(regions, maps, tile, first, found, counts);
      for (int begin = 0; begin < total; begin += batch) {
        const int count = min(batch, total - begin);
        find_weights(regions, map, tile, found + begin, count, weights);
        __syncthreads();
        for (int i = 0; owns && i < count; ++i)
          add_region<T, n>(regions, weights + i * cells * kTile, row, column,
                           dy + int64_t{found[begin + i]} * regions.height * regions.width * maps.channels + channel,
                           maps.channels, sum);
        __syncthreads();
      }
    }
    if (owns) store(to, packed<T>(sum));
  }
}

__global__ void __launch_bounds__(kThreads)
    roi_levels_kernel(int64_t count, const float* rois, RoiLevels o, int32_t* levels) {
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count; i += int64_t{gridDim.x} * kThreads)
    levels[i] = roi_level(rois + 4 * i, o.canonical_size, o.canonical_level, o.epsilon, o.plus_one ? 1.0f : 0.0f,
                          o.lowest, o.highest);
}

// body(T(), lanes) for the widest accesses that all maps and `other` allow.
template <class Body>
void dispatch_maps(const char* what, std::span<const Tensor> maps, const Tensor& other, Body&& body) {
  const int64_t channels = other.dim(3);
  const bool whole = std::ranges::all_of(maps, [](const Tensor& map) { return !map || aligned(map.raw(), 16); });
  dispatch_lanes(what, other.dtype(), whole ? channels : 1, {other.raw()}, body);
}

}  // namespace

void roi_align(Context& context, std::span<const Tensor> maps, const Tensor& rois, const Tensor& images,
               const Tensor& levels, const RoiAlignOptions& options, const Tensor& y) {
  if (y.count() == 0) return;
  dispatch_maps("roi_align", maps, y, [&]<class T, int n>(T, std::integral_constant<int, n>) {
    RoiMaps<const T> all{{}, static_cast<int>(maps.size()), maps[0].dim(0), y.dim(3)};
    for (size_t i = 0; i < maps.size(); ++i)
      all.map[i] = {maps[i].data<T>(),
                    static_cast<int>(maps[i].dim(1)),
                    static_cast<int>(maps[i].dim(2)),
                    options.scales[i],
                    0,
                    false};
    const int64_t packs = y.count() / n;
    DT_CHECK(packs < int64_t{1} << 31, "roi_align: a result ", y.shape(), ", expected fewer than 2^31 packs");
    launch(context, roi_align_kernel<T, n>, {blocks_for(context, packs, kThreads), kThreads}, all,
           Regions(rois, images, levels, options), Divisor(y.dim(3) / n), Divisor(options.width),
           Divisor(options.height), static_cast<uint32_t>(packs), y.data<T>());
  });
}

void roi_align_grad(Context& context, const Tensor& dy, const Tensor& rois, const Tensor& images, const Tensor& levels,
                    const RoiAlignOptions& options, std::span<const Tensor> dmaps, std::span<const uint8_t> add) {
  const size_t region_bytes = static_cast<size_t>(options.height + options.width) * kTile * sizeof(float);
  DT_CHECK(region_bytes <= kMostWeightBytes, "roi_align: ", options.height, " x ", options.width,
           " cells; expected at most ", kMostWeightBytes / (kTile * sizeof(float)), " in a row and a column together");
  const int batch = std::min(kMostBatch, static_cast<int>(kMostWeightBytes / region_bytes));
  dispatch_maps("roi_align_grad", dmaps, dy, [&]<class T, int n>(T, std::integral_constant<int, n>) {
    RoiMaps<T> all{{}, static_cast<int>(dmaps.size()), 0, dy.dim(3)};
    int64_t tiles = 0;
    for (size_t i = 0; i < dmaps.size(); ++i) {
      all.map[i] = {nullptr, 0, 0, options.scales[i], tiles, add[i] != 0};
      if (!dmaps[i]) continue;  // has no tiles
      const int64_t h = dmaps[i].dim(1), w = dmaps[i].dim(2);
      all.map[i].data = dmaps[i].data<T>();
      all.map[i].height = static_cast<int>(h), all.map[i].width = static_cast<int>(w);
      tiles += dmaps[i].dim(0) * ((h + kTile - 1) / kTile) * ((w + kTile - 1) / kTile);
    }
    const auto slices = static_cast<int>((dy.dim(3) / n + kPacks - 1) / kPacks);
    const size_t bytes = (kThreads + kWarps) * sizeof(int) + static_cast<size_t>(batch) * region_bytes;
    launch(context, roi_align_grad_kernel<T, n>,
           {blocks_for(context, tiles * slices * kThreads, kThreads), kThreads, bytes}, all,
           Regions(rois, images, levels, options), tiles, slices, batch, dy.data<T>());
  });
}

void roi_levels(Context& context, const Tensor& rois, const RoiLevels& options, const Tensor& levels) {
  if (levels.count() == 0) return;
  launch(context, roi_levels_kernel, {blocks_for(context, levels.count(), kThreads), kThreads}, levels.count(),
         rois.data<float>(), options, levels.data<int32_t>());
}

}  // namespace dtrain::cuda
