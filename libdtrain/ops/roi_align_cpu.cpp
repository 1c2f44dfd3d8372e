// CPU kernels of RoIAlign. Bilinear weights are separable: rows and columns are computed once per region, and samples
// of a cell that share a pixel merge into one tap.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "dtrain/ops/roi_align.h"
#include "libdtrain/cpu/threads/work_stealing.h"
#include "libdtrain/ops/pointwise_kernels.h"
#include "libdtrain/ops/roi_align_kernels.h"
#include "libdtrain/ops/roi_align_math.h"

namespace dtrain::cpu {
namespace {

// Eight channels at a time, in GCC's vector extension: this file is compiled for the baseline instruction set only, so
// the SIMD vocabulary of libdtrain/cpu/kernels/isa/ does not apply. From plain loops GCC 12 makes gather() four times
// as slow, because it spills the sums. V is Float8, or float for the remaining channels.
using Float8 = float __attribute__((vector_size(32)));

template <class V>
V load(const float* from) {
  V value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
template <class V>
void store(float* to, V value) {
  std::memcpy(to, &value, sizeof value);
}

constexpr int64_t kTapWeight = 8;  // what an element of a cell costs, in loads, adds and stores

struct Range {
  int64_t begin = 0, end = INT64_MAX;
  bool has(int64_t i) const { return begin <= i && i < end; }
};

struct AxisTap {
  int64_t pixel;
  float weight;
};

// Taps of an axis per cell, within a range of pixels.
class AxisTaps {
 public:
  void assign(const RoiAxis& axis, int cells, const Range& range = {}) {
    taps_.clear();
    ends_.clear();
    for (int i = 0; i < cells; ++i) {
      const size_t begin = taps_.size();
      for (int sample = 0; sample < axis.grid; ++sample) {
        const RoiTap tap = roi_tap(axis.at(i, sample), axis.pixels);
        if (!tap.inside) continue;
        if (range.has(tap.low)) add(begin, tap.low, tap.low_weight);
        if (tap.high != tap.low && range.has(tap.high)) add(begin, tap.high, tap.high_weight);
      }
      ends_.push_back(taps_.size());
    }
  }
  std::span<const AxisTap> all() const { return taps_; }
  std::span<const AxisTap> of(int cell) const {
    const size_t begin = cell == 0 ? 0 : ends_[static_cast<size_t>(cell) - 1];
    return {taps_.data() + begin, ends_[static_cast<size_t>(cell)] - begin};
  }

 private:
  // Samples ascend, so an earlier tap of the same pixel is among the last two. In inverted regions they do not: a pixel
  // may then have several taps.
  void add(size_t begin, int64_t pixel, float weight) {
    for (size_t i = taps_.size(); i > begin && taps_.size() - i < 2; --i)
      if (taps_[i - 1].pixel == pixel) {
        taps_[i - 1].weight += weight;
        return;
      }
    taps_.push_back({pixel, weight});
  }

  std::vector<AxisTap> taps_;
  std::vector<size_t> ends_;  // per cell
};

// Taps of a region on its map, or on a range of the map's rows.
class RegionTaps {
 public:
  // `map` [n, h, w, c]
  void assign(const float* roi, float scale, const RoiAlignOptions& o, const Shape& map, const Range& range = {}) {
    const auto h = static_cast<int>(map[1]), w = static_cast<int>(map[2]);
    const RoiAxis rows = RoiAxis::of(roi[1], roi[3], scale, o.height, o.sampling_ratio, o.aligned, h);
    const RoiAxis columns = RoiAxis::of(roi[0], roi[2], scale, o.width, o.sampling_ratio, o.aligned, w);
    rows_.assign(rows, o.height, range);
    columns_.assign(columns, o.width);
    factor_ = roi_factor(rows, columns);
    row_stride_ = map[2] * map[3], pixel_stride_ = map[3];
  }

  struct Tap {
    int64_t at;  // offset of the pixel's first channel within the image
    float weight;
  };
  std::span<const Tap> cell(int row, int column) {
    taps_.clear();
    for (const AxisTap& y : rows_.of(row))
      for (const AxisTap& x : columns_.of(column))
        taps_.push_back({y.pixel * row_stride_ + x.pixel * pixel_stride_, y.weight * x.weight * factor_});
    return taps_;
  }
  bool empty() const { return rows_.all().empty() || columns_.all().empty(); }
  // loads[h] += number of taps in row h
  void add_loads(int64_t* loads) const {
    for (const AxisTap& y : rows_.all()) loads[y.pixel] += static_cast<int64_t>(columns_.all().size());
  }

 private:
  AxisTaps rows_, columns_;
  float factor_ = 1;
  int64_t row_stride_ = 0, pixel_stride_ = 0;
  std::vector<Tap> taps_;
};

// y[c] = sum of weight * x[c] over the taps, for n vectors of channels from c on.
template <class V, int n>
void gather(std::span<const RegionTaps::Tap> taps, const float* x, float* y, int64_t c) {
  constexpr int64_t kWidth = sizeof(V) / sizeof(float);
  V sum[n] = {};
  for (const auto& [at, weight] : taps)
    for (int i = 0; i < n; ++i) sum[i] += weight * load<V>(x + at + c + i * kWidth);
  for (int i = 0; i < n; ++i) store(y + c + i * kWidth, sum[i]);
}

// dx[c] += weight * dy[c] at each tap, for the same vectors.
template <class V, int n>
void scatter(std::span<const RegionTaps::Tap> taps, const float* dy, float* dx, int64_t c) {
  constexpr int64_t kWidth = sizeof(V) / sizeof(float);
  V value[n];
  for (int i = 0; i < n; ++i) value[i] = load<V>(dy + c + i * kWidth);
  for (const auto& [at, weight] : taps)
    for (int i = 0; i < n; ++i) {
      float* const to = dx + at + c + i * kWidth;
      store(to, load<V>(to) + weight * value[i]);
    }
}

// body(V(), n, c) for vectors that tile the channels.
template <class Body>
void for_each_vector(int64_t end, Body&& body) {
  int64_t c = 0;
  for (; c + 64 <= end; c += 64) body(Float8(), std::integral_constant<int, 8>(), c);
  for (; c + 8 <= end; c += 8) body(Float8(), std::integral_constant<int, 1>(), c);
  for (; c < end; ++c) body(float(), std::integral_constant<int, 1>(), c);
}

int64_t level_of(const Tensor& levels, int64_t roi) { return levels ? levels.data<int32_t>()[roi] : 0; }

void require_regions(const Tensor& images, const Tensor& levels, int64_t n, size_t maps) {
  for (int64_t i = 0; i < images.count(); ++i) {
    const int64_t image = images.data<int32_t>()[i], level = level_of(levels, i);
    DT_CHECK(image < n && (image < 0 || (0 <= level && level < static_cast<int64_t>(maps))), "roi_align: region ", i,
             " is on image ", image, " of ", n, ", map ", level, " of ", maps);
  }
}

// All rows of all maps as one sequence, and the regions on it.
struct MapRows {
  const Tensor &rois, &images, &levels;
  const RoiAlignOptions& options;
  std::span<const Tensor> maps;  // may be undefined
  std::vector<int64_t> first;    // first row of each map, and the total

  MapRows(const Tensor& roi, const Tensor& image, const Tensor& level, const RoiAlignOptions& o,
          std::span<const Tensor> all)
      : rois(roi), images(image), levels(level), options(o), maps(all), first{0} {
    for (const Tensor& map : maps) first.push_back(first.back() + (map ? map.dim(0) * map.dim(1) : 0));
  }

  // body(r, map, row) for each region that touches `range`, in order; `region` is its part within the range, `row` the
  // first row of its image.
  template <class Body>
  void for_each_region(const Range& range, RegionTaps& region, Body&& body) const {
    for (int64_t r = 0; r < rois.dim(0); ++r) {
      const int64_t image = images.data<int32_t>()[r];
      const auto level = static_cast<size_t>(level_of(levels, r));
      if (image < 0 || !maps[level]) continue;
      const int64_t row = first[level] + image * maps[level].dim(1);
      if (row >= range.end || row + maps[level].dim(1) <= range.begin) continue;
      region.assign(rois.data<float>() + 4 * r, options.scales[level], options, maps[level].shape(),
                    {range.begin - row, range.end - row});
      if (!region.empty()) body(r, level, row);
    }
  }
};

// Prefix sums of the rows' loads, with the total at the end.
std::vector<int64_t> starts_of(const MapRows& rows) {
  std::vector<int64_t> loads(static_cast<size_t>(rows.first.back()) + 1);
  RegionTaps region;
  rows.for_each_region({0, rows.first.back()}, region,
                       [&](int64_t, size_t, int64_t row) { region.add_loads(loads.data() + row); });
  std::exclusive_scan(loads.begin(), loads.end(), loads.begin(), int64_t{0});
  return loads;
}

}  // namespace

void roi_align(Context&, std::span<const Tensor> maps, const Tensor& rois, const Tensor& images, const Tensor& levels,
               const RoiAlignOptions& o, const Tensor& y) {
  require_regions(images, levels, maps[0].dim(0), maps.size());
  const int64_t channels = y.dim(3), per_roi = o.height * o.width * channels;
  parallel_ranges(
      rois.dim(0),
      [&](int64_t begin, int64_t end) {
        RegionTaps region;
        for (int64_t r = begin; r < end; ++r) {
          float* to = y.data<float>() + r * per_roi;
          const int64_t image = images.data<int32_t>()[r];
          if (image < 0) {
            std::fill_n(to, per_roi, 0.0f);
            continue;
          }
          const auto level = static_cast<size_t>(level_of(levels, r));
          const Tensor& map = maps[level];
          region.assign(rois.data<float>() + 4 * r, o.scales[level], o, map.shape());
          const float* const from = map.data<float>() + image * (map.count() / map.dim(0));
          for (int i = 0; i < o.height; ++i)
            for (int j = 0; j < o.width; ++j, to += channels) {
              const auto taps = region.cell(i, j);
              for_each_vector(channels, [&]<class V, int n>(V, std::integral_constant<int, n>, int64_t c) {
                gather<V, n>(taps, from, to, c);
              });
            }
        }
      },
      per_roi * kTapWeight);
}

// Each thread owns a range of rows with an equal share of taps and visits all regions in order: no write conflicts, and
// the order of additions does not depend on the number of threads. Splitting by channels instead takes 2.5 times as
// long on maps of 80 x 120 x 256: parts of pixels defeat the hardware prefetcher.
void roi_align_grad(Context&, const Tensor& dy, const Tensor& rois, const Tensor& images, const Tensor& levels,
                    const RoiAlignOptions& o, std::span<const Tensor> dmaps, std::span<const uint8_t> add) {
  for (size_t level = 0; level < dmaps.size(); ++level)
    if (dmaps[level] && !add[level]) write(dmaps[level], false, [](int64_t) { return 0.0f; });
  const MapRows rows(rois, images, levels, o, dmaps);
  const std::vector<int64_t> starts = starts_of(rows);
  const int64_t channels = dy.dim(3);
  const auto add_rows = [&](int64_t begin, int64_t end) {
    const auto row_at = [&](int64_t load) { return std::ranges::lower_bound(starts, load) - starts.begin(); };
    RegionTaps region;
    rows.for_each_region({row_at(begin), row_at(end)}, region, [&](int64_t r, size_t level, int64_t row) {
      const float* from = dy.data<float>() + r * o.height * o.width * channels;
      float* const to = dmaps[level].data<float>() + (row - rows.first[level]) * dmaps[level].dim(2) * channels;
      for (int i = 0; i < o.height; ++i)
        for (int j = 0; j < o.width; ++j, from += channels) {
          const auto taps = region.cell(i, j);
          for_each_vector(channels, [&]<class V, int n>(V, std::integral_constant<int, n>, int64_t c) {
            scatter<V, n>(taps, from, to, c);
          });
        }
    });
  };
  parallel_ranges(starts.back(), add_rows, channels);
}

void roi_levels(Context&, const Tensor& rois, const RoiLevels& o, const Tensor& levels) {
  for (int64_t r = 0; r < levels.count(); ++r)
    levels.data<int32_t>()[r] = roi_level(rois.data<float>() + 4 * r, o.canonical_size, o.canonical_level, o.epsilon,
                                          o.plus_one ? 1.0f : 0.0f, o.lowest, o.highest);
}

}  // namespace dtrain::cpu
