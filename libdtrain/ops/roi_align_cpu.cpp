// CPU arm of RoIAlign. The weights of a cell are products of those of its rows and of its columns, which are found once
// per region; samples of a cell that share a pixel are one tap.
#include <algorithm>
#include <utility>

#include "libdtrain/cpu/parallel.h"
#include "libdtrain/cpu/simd.h"
#include "libdtrain/ops/roi_align.h"
#include "libdtrain/ops/roi_align_math.h"

namespace dtrain::cpu {
namespace {

constexpr int64_t kBlock = 16;  // channels, one line of the cache: what threads share the gradient in units of

struct AxisTap {
  int64_t pixel;
  float weight;
};

// The pixels that each cell of an axis reads, in ascending order.
class AxisTaps {
 public:
  void assign(const RoiAxis& axis, int cells) {
    taps_.clear();
    ends_.clear();
    for (int i = 0; i < cells; ++i) {
      const size_t begin = taps_.size();
      for (int sample = 0; sample < axis.grid; ++sample) {
        const RoiTap tap = roi_tap(axis.at(i, sample), axis.pixels);
        if (!tap.inside) continue;
        add(begin, tap.low, tap.low_weight);
        if (tap.high != tap.low) add(begin, tap.high, tap.high_weight);
      }
      ends_.push_back(taps_.size());
    }
  }
  std::span<const AxisTap> of(int cell) const {
    const size_t begin = cell == 0 ? 0 : ends_[static_cast<size_t>(cell) - 1];
    return {taps_.data() + begin, ends_[static_cast<size_t>(cell)] - begin};
  }

 private:
  // Samples go forwards: what was read before is among the last two.
  void add(size_t begin, int64_t pixel, float weight) {
    for (size_t i = taps_.size(); i > begin && taps_.size() - i < 2; --i)
      if (taps_[i - 1].pixel == pixel) {
        taps_[i - 1].weight += weight;
        return;
      }
    taps_.push_back({pixel, weight});
  }

  std::vector<AxisTap> taps_;
  std::vector<size_t> ends_;  // of each cell
};

// One region on its map.
class RegionTaps {
 public:
  // `map` [n, h, w, c]
  void assign(const float* roi, float scale, const RoiAlignOptions& o, const Shape& map) {
    const auto h = static_cast<int>(map[1]), w = static_cast<int>(map[2]);
    const RoiAxis rows = RoiAxis::of(roi[1], roi[3], scale, o.height, o.sampling_ratio, o.aligned, h);
    const RoiAxis columns = RoiAxis::of(roi[0], roi[2], scale, o.width, o.sampling_ratio, o.aligned, w);
    rows_.assign(rows, o.height);
    columns_.assign(columns, o.width);
    factor_ = roi_factor(rows, columns);
    row_stride_ = map[2] * map[3], pixel_stride_ = map[3];
  }

  struct Tap {
    int64_t at;  // the pixel's first channel, from that of the image
    float weight;
  };
  std::span<const Tap> cell(int row, int column) {
    taps_.clear();
    for (const AxisTap& y : rows_.of(row))
      for (const AxisTap& x : columns_.of(column))
        taps_.push_back({y.pixel * row_stride_ + x.pixel * pixel_stride_, y.weight * x.weight * factor_});
    return taps_;
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

// dx[c] += weight * dy[c] at each tap, likewise.
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

// body(V(), n, c) for vectors that tile the channels [begin, end).
template <class Body>
void for_each_vector(int64_t begin, int64_t end, Body&& body) {
  int64_t c = begin;
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

int64_t ceil_divide(int64_t a, int64_t b) { return a <= 0 ? 0 : (a + b - 1) / b; }

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
              for_each_vector(0, channels, [&]<class V, int n>(V, std::integral_constant<int, n>, int64_t c) {
                gather<V, n>(taps, from, to, c);
              });
            }
        }
      },
      per_roi * 8);
}

// Each thread owns channels, and goes through all regions in their order: no two threads write one element, and the
// order of the additions to it does not depend on how many there are.
void roi_align_grad(Context&, const Tensor& dy, const Tensor& rois, const Tensor& images, const Tensor& levels,
                    const RoiAlignOptions& o, std::span<const Tensor> dmaps, std::span<const uint8_t> add) {
  for (size_t level = 0; level < dmaps.size(); ++level)
    if (dmaps[level] && !add[level]) write(dmaps[level], false, [](int64_t) { return 0.0f; });
  const int64_t channels = dy.dim(3), blocks = ceil_divide(channels, kBlock), cells = o.height * o.width;
  int64_t n = 0;
  for (const Tensor& dmap : dmaps)
    if (dmap) n = dmap.dim(0);
  // Units of work are blocks of channels of an image.
  const auto owned = [&](int64_t begin, int64_t end) {
    RegionTaps region;
    for (int64_t r = 0; r < rois.dim(0); ++r) {
      const int64_t image = images.data<int32_t>()[r];
      if (image < 0) continue;
      const auto level = static_cast<size_t>(level_of(levels, r));
      const Tensor& dmap = dmaps[level];
      const int64_t first = ceil_divide(begin - image, n) * kBlock;
      const int64_t last = std::min(ceil_divide(end - image, n) * kBlock, channels);
      if (!dmap || first >= last) continue;
      region.assign(rois.data<float>() + 4 * r, o.scales[level], o, dmap.shape());
      float* const to = dmap.data<float>() + image * (dmap.count() / n);
      const float* from = dy.data<float>() + r * cells * channels;
      for (int i = 0; i < o.height; ++i)
        for (int j = 0; j < o.width; ++j, from += channels) {
          const auto taps = region.cell(i, j);
          for_each_vector(first, last, [&]<class V, int m>(V, std::integral_constant<int, m>, int64_t c) {
            scatter<V, m>(taps, from, to, c);
          });
        }
    }
  };
  parallel_ranges(blocks * n, owned, rois.dim(0) * cells * 8 * kBlock);
}

void roi_levels(Context&, const Tensor& rois, const RoiLevels& o, const Tensor& levels) {
  for (int64_t r = 0; r < levels.count(); ++r)
    levels.data<int32_t>()[r] = roi_level(rois.data<float>() + 4 * r, o.canonical_size, o.canonical_level, o.epsilon,
                                          o.plus_one ? 1.0f : 0.0f, o.lowest, o.highest);
}

}  // namespace dtrain::cpu
