#include "data/coco/paste.h"

#include <algorithm>
#include <cmath>

#include "dtrain/core/error.h"

namespace dtrain::data::coco {
namespace {

// Bilinear tap: two adjacent cells of a padded row and the weight of the second.
struct Tap {
  int first = 0, second = 0;
  float share = 0;
};

// Taps of the pixels [begin, begin + taps.size()) along an axis; other pixels are outside of the box.
struct Axis {
  int64_t begin = 0;
  std::vector<Tap> taps;
};

// `place` is relative to the centre of the first cell.
Tap tap_at(double place, int cells) {
  const double inside = std::clamp(place, 0.0, static_cast<double>(cells - 1));
  const int first = static_cast<int>(inside);
  return {first, std::min(first + 1, cells - 1), static_cast<float>(inside - first)};
}

// Pixel centres in continuous coordinates. `cells` includes the border.
Axis continuous(double low, double high, int cells, int64_t pixels) {
  const double cell = (high - low) / (cells - 2);
  if (!(cell > 0)) return {};
  const double begin = low - cell, end = high + cell;
  Axis axis;
  axis.begin = static_cast<int64_t>(std::clamp(std::ceil(begin - 0.5), 0.0, static_cast<double>(pixels)));
  for (int64_t i = axis.begin; i < pixels && static_cast<double>(i) + 0.5 < end; ++i)
    axis.taps.push_back(tap_at((static_cast<double>(i) + 0.5 - begin) / cell - 0.5, cells));
  return axis;
}

constexpr double kFarthest = 1e9;  // clamp for corners; exact in integers

// torchvision truncates the corners of the padded box, counts sizes with + 1, and resizes the mask to that size.
Axis whole_pixels(double low, double high, int cells, int64_t pixels) {
  const double centre = (low + high) / 2, half = (high - low) / 2 * cells / (cells - 2);
  const auto corner = [](double x) {
    return static_cast<int64_t>(std::isnan(x) ? 0 : std::clamp(x, -kFarthest, kFarthest));
  };
  const int64_t first = corner(centre - half), last = corner(centre + half);
  const int64_t size = std::max<int64_t>(last - first + 1, 1);
  Axis axis{std::max<int64_t>(first, 0), {}};
  for (int64_t i = axis.begin; i < std::min(last + 1, pixels); ++i) {
    const double place = (static_cast<double>(i - first) + 0.5) * cells / static_cast<double>(size) - 0.5;
    axis.taps.push_back(tap_at(place, cells));
  }
  return axis;
}

// Mask padded with zeros.
std::vector<float> with_border(std::span<const float> cells, int side) {
  const int wide = side + 2;
  std::vector<float> padded(static_cast<size_t>(wide) * wide);
  for (int row = 0; row < side; ++row)
    std::ranges::copy(cells.subspan(static_cast<size_t>(row) * side, side),
                      padded.begin() + static_cast<ptrdiff_t>(row + 1) * wide + 1);
  return padded;
}

// Run-length encoder: appends set or unset pixels.
class Runs {
 public:
  void append(bool set, int64_t pixels) {
    if (pixels == 0) return;
    if (set != set_) {
      counts_.push_back(run_);
      run_ = 0;
      set_ = set;
    }
    run_ += static_cast<uint32_t>(pixels);
  }
  std::vector<uint32_t> take() {
    counts_.push_back(run_);
    return std::move(counts_);
  }

 private:
  std::vector<uint32_t> counts_;
  uint32_t run_ = 0;
  bool set_ = false;
};

}  // namespace

Rle paste(std::span<const float> cells, int side, const PasteBox& box, int64_t height, int64_t width, Paste rule) {
  DT_CHECK(side > 0 && cells.size() == static_cast<size_t>(side) * side, "paste: ", cells.size(),
           " cells of a mask of side ", side);
  DT_CHECK(height > 0 && width > 0 && height <= kMaxMaskPixels / width, "paste: an image of ", height, " x ", width);
  const int wide = side + 2;
  const auto axis = rule == Paste::continuous ? continuous : whole_pixels;
  const Axis columns = axis(box.x1, box.x2, wide, width), rows = axis(box.y1, box.y2, wide, height);
  const std::vector<float> padded = with_border(cells, side);
  const auto between = [](float a, float b, float share) { return a + share * (b - a); };

  Runs runs;
  runs.append(false, columns.begin * height);
  std::vector<float> column(static_cast<size_t>(wide));
  for (const Tap& x : columns.taps) {
    for (int i = 0; i < wide; ++i) {
      const float* const row = padded.data() + static_cast<ptrdiff_t>(i) * wide;
      column[static_cast<size_t>(i)] = between(row[x.first], row[x.second], x.share);
    }
    runs.append(false, rows.begin);
    for (const Tap& y : rows.taps) {
      const float p = between(column[static_cast<size_t>(y.first)], column[static_cast<size_t>(y.second)], y.share);
      runs.append(rule == Paste::continuous ? p >= 0.5f : p > 0.5f, 1);
    }
    runs.append(false, height - rows.begin - static_cast<int64_t>(rows.taps.size()));
  }
  runs.append(false, (width - columns.begin - static_cast<int64_t>(columns.taps.size())) * height);
  return {height, width, runs.take()};
}

}  // namespace dtrain::data::coco
