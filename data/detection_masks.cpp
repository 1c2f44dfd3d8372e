#include "data/detection_masks.h"

#include <algorithm>
#include <cmath>

#include "dtrain/core/error.h"

namespace dtrain::data {
namespace {

// Collects the run ends of one mask from the ascending pixels at which its value changes.
class Ends {
 public:
  explicit Ends(std::vector<int32_t>& ends) : ends_(ends), begin_(ends.size()) {}

  // Toggles the value at `pixel`; toggling twice cancels.
  void change(int64_t pixel) {
    set_ = !set_;
    if (ends_.size() > begin_ && ends_.back() == pixel)
      ends_.pop_back();
    else
      ends_.push_back(static_cast<int32_t>(pixel));
  }
  bool set() const { return set_; }
  void finish(int64_t pixels) {
    if (ends_.size() == begin_ || ends_.back() != pixels) ends_.push_back(static_cast<int32_t>(pixels));
  }

 private:
  std::vector<int32_t>& ends_;
  size_t begin_;
  bool set_ = false;
};

// Source row or column of each output index: nearest by centre (OpenCV's INTER_NEAREST_EXACT), or as
// Placement::resizes_masks states.
std::vector<int64_t> sources_of(int64_t from, int64_t to, bool flip, bool as_torch) {
  std::vector<int64_t> sources(static_cast<size_t>(to));
  const float scale = static_cast<float>(from) / static_cast<float>(to);
  for (int64_t i = 0; i < to; ++i) {
    int64_t source = (2 * (flip ? to - 1 - i : i) + 1) * from / (2 * to);
    if (as_torch) {
      source = std::min(static_cast<int64_t>(std::floor(static_cast<float>(i) * scale)), from - 1);
      if (flip) source = from - 1 - source;
    }
    sources[static_cast<size_t>(i)] = source;
  }
  return sources;
}

// For each source row, and one past the last: the first output row from it or a later one.
std::vector<int64_t> first_rows(const std::vector<int64_t>& sources, int64_t from) {
  std::vector<int64_t> first;
  size_t row = 0;
  for (int64_t source = 0; source <= from; ++source) {
    while (row < sources.size() && sources[row] < source) ++row;
    first.push_back(static_cast<int64_t>(row));
  }
  return first;
}

void append_resampled(const coco::Rle& rle, const Placement& placement, std::vector<int32_t>& out) {
  const ImageSize &from = placement.from, &to = placement.to;
  if (rle.height != from.height || rle.width != from.width)
    throw Error(Fault::data, concat("a mask of ", rle.width, "x", rle.height, " pixels in an image of ", from.width,
                                    "x", from.height));
  std::vector<int64_t> changes;  // in source pixels
  for (int64_t at = 0; const uint32_t count : rle.counts) changes.push_back(at += count);
  const bool as_torch = placement.resizes_masks;
  const std::vector<int64_t> first =
      first_rows(sources_of(from.height, to.height, /*flip=*/false, as_torch), from.height);
  const std::vector<int64_t> columns = sources_of(from.width, to.width, placement.flip, as_torch);
  Ends ends(out);
  for (int64_t x = 0; x < to.width; ++x) {
    const int64_t begin = columns[static_cast<size_t>(x)] * from.height;
    auto change = std::ranges::upper_bound(changes, begin);
    if (((change - changes.begin()) % 2 == 1) != ends.set()) ends.change(x * to.height);
    for (; change != changes.end() && *change < begin + from.height; ++change)
      ends.change(x * to.height + first[static_cast<size_t>(*change - begin)]);
  }
  ends.finish(to.height * to.width);
}

// Rasterised at the image's original size.
coco::Rle filled(const coco::Polygons& outline, const Placement& placement) {
  return coco::from_polygons(outline, placement.from.height, placement.from.width);
}

void append_filled(coco::Polygons outline, const Placement& placement, std::vector<int32_t>& out) {
  for (std::vector<double>& polygon : outline)
    for (size_t i = 0; i + 1 < polygon.size(); i += 2) {
      polygon[i] = placement.x(polygon[i]);
      polygon[i + 1] = placement.y(polygon[i + 1]);
    }
  const coco::Rle rle = coco::from_polygons(outline, placement.to.height, placement.to.width);
  for (int64_t at = 0; const uint32_t count : rle.counts) out.push_back(static_cast<int32_t>(at += count));
}

// Every crossing from one column to the next gives a run; a side that spans n columns has up to n + 1 crossings.
uint64_t most_runs(const coco::Polygons& outline, double scale_x) {
  uint64_t runs = 1;
  for (const std::vector<double>& polygon : outline)
    for (size_t i = 0; i + 1 < polygon.size(); i += 2) {
      const double next = polygon[i + 2 < polygon.size() ? i + 2 : 0];
      runs += static_cast<uint64_t>(std::ceil(std::abs(next - polygon[i]) * scale_x)) + 1;
    }
  return runs;
}

// For a mask with `runs` runs at the original size. A repeated column may start with another value than it ends with,
// which adds one run per repetition.
uint64_t most_resampled_runs(uint64_t runs, const Placement& placement) {
  const auto repeats = static_cast<uint64_t>(std::ceil(placement.scale_x()));
  return 2 * std::max<uint64_t>(repeats, 1) * runs + 1;
}

}  // namespace

void append_runs(const coco::Annotation& object, const Placement& placement, std::vector<int32_t>& ends) {
  if (const auto* rle = std::get_if<coco::Rle>(&object.segmentation))
    append_resampled(*rle, placement, ends);
  else if (const auto* polygons = std::get_if<coco::Polygons>(&object.segmentation))
    placement.resizes_masks ? append_resampled(filled(*polygons, placement), placement, ends)
                            : append_filled(*polygons, placement, ends);
}

uint64_t most_runs(const coco::Annotation& object, const Placement& placement) {
  if (const auto* polygons = std::get_if<coco::Polygons>(&object.segmentation))
    return placement.resizes_masks ? most_resampled_runs(most_runs(*polygons, 1.0), placement)
                                   : most_runs(*polygons, placement.scale_x());
  const auto* rle = std::get_if<coco::Rle>(&object.segmentation);
  return rle ? most_resampled_runs(rle->counts.size(), placement) : 0;
}

}  // namespace dtrain::data
