#include "data/detection_masks.h"

#include <algorithm>
#include <cmath>

#include "libdtrain/core/error.h"

namespace dtrain::data {
namespace {

// Run ends of one mask, made of the pixels at which its value changes, in ascending order.
class Ends {
 public:
  explicit Ends(std::vector<int32_t>& ends) : ends_(ends), begin_(ends.size()) {}

  // The value changes at `pixel`; where it did so already, it changes back.
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

// For each row of the source, and for the one after the last: the first row of the result that comes of it or a later
// one.
std::vector<int64_t> first_rows(int64_t from, int64_t to) {
  std::vector<int64_t> first(static_cast<size_t>(from) + 1);
  // Row y of the result is row (2 * y + 1) * from / (2 * to) of the source.
  for (int64_t row = 0; row <= from; ++row) first[static_cast<size_t>(row)] = (2 * row * to + from - 1) / (2 * from);
  return first;
}

// To the nearest pixel by its centre, as OpenCV's INTER_NEAREST_EXACT.
void append_resampled(const coco::Rle& rle, const Placement& placement, std::vector<int32_t>& out) {
  const ImageSize &from = placement.from, &to = placement.to;
  if (rle.height != from.height || rle.width != from.width)
    throw Error(Fault::data, concat("a mask of ", rle.width, "x", rle.height, " pixels in an image of ", from.width,
                                    "x", from.height));
  std::vector<int64_t> changes;  // of the source
  for (int64_t at = 0; const uint32_t count : rle.counts) changes.push_back(at += count);
  const std::vector<int64_t> first = first_rows(from.height, to.height);
  Ends ends(out);
  for (int64_t x = 0; x < to.width; ++x) {
    const int64_t mirrored = placement.flip ? to.width - 1 - x : x;
    const int64_t begin = (2 * mirrored + 1) * from.width / (2 * to.width) * from.height;
    auto change = std::ranges::upper_bound(changes, begin);
    if (((change - changes.begin()) % 2 == 1) != ends.set()) ends.change(x * to.height);
    for (; change != changes.end() && *change < begin + from.height; ++change)
      ends.change(x * to.height + first[static_cast<size_t>(*change - begin)]);
  }
  ends.finish(to.height * to.width);
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

// An outline gives a run wherever it passes from one column into the next, which a side as long as n columns does up to
// n + 1 times.
uint64_t most_runs(const coco::Polygons& outline, const Placement& placement) {
  uint64_t runs = 1;
  for (const std::vector<double>& polygon : outline)
    for (size_t i = 0; i + 1 < polygon.size(); i += 2) {
      const double next = polygon[i + 2 < polygon.size() ? i + 2 : 0];
      runs += static_cast<uint64_t>(std::ceil(std::abs(next - polygon[i]) * placement.scale_x())) + 1;
    }
  return runs;
}

}  // namespace

void append_runs(const coco::Annotation& object, const Placement& placement, std::vector<int32_t>& ends) {
  if (const auto* rle = std::get_if<coco::Rle>(&object.segmentation))
    append_resampled(*rle, placement, ends);
  else if (const auto* polygons = std::get_if<coco::Polygons>(&object.segmentation))
    append_filled(*polygons, placement, ends);
}

uint64_t most_runs(const coco::Annotation& object, const Placement& placement) {
  if (const auto* polygons = std::get_if<coco::Polygons>(&object.segmentation)) return most_runs(*polygons, placement);
  const auto* rle = std::get_if<coco::Rle>(&object.segmentation);
  if (!rle) return 0;
  // A column that is repeated may begin with another value than it ends with, which is a run more for each of its own.
  const auto repeats = static_cast<uint64_t>(std::ceil(placement.scale_x()));
  return 2 * std::max<uint64_t>(repeats, 1) * rle->counts.size() + 1;
}

}  // namespace dtrain::data
