#include <algorithm>
#include <limits>

#include "apps/mask_rcnn/draw_objects.h"

namespace dtrain::mask_rcnn {
namespace {

// Maximum overlap of labels, and maximum coverage of the picture.
constexpr double kMostOfLabel = 0.1, kMostOfPicture = 0.25;

Rectangle moved_inside(Rectangle chip, const Rectangle& picture) {
  chip.x = std::max(picture.x, std::min(chip.x, picture.right() - chip.width));
  chip.y = std::max(picture.y, std::min(chip.y, picture.bottom() - chip.height));
  return intersection(chip, picture);
}

int64_t area_of(const Rectangle& area) { return area.empty() ? 0 : int64_t{area.width} * area.height; }

int64_t shared_pixels(const Rectangle& place, std::span<const Rectangle> others) {
  int64_t shared = 0;
  for (const Rectangle& other : others) shared += area_of(intersection(place, other));
  return shared;
}

// Candidate positions by preference: above the box, inside, below, beside, then further down its left side.
std::vector<Rectangle> places(const LabelledBox& label, const Rectangle& picture) {
  constexpr int kSteps = 4;
  const Rectangle& box = label.box;
  const int right = box.right() - label.width, above = box.y - label.height, lowest = box.bottom() - label.height;
  std::vector<Rectangle> all;
  for (const auto& [x, y] : {std::pair{box.x, above},
                             {box.x, box.y},
                             {right, above},
                             {box.x, box.bottom()},
                             {right, box.y},
                             {right, box.bottom()},
                             {box.x, lowest},
                             {box.right(), box.y},
                             {box.x - label.width, box.y}})
    all.push_back(moved_inside({x, y, label.width, label.height}, picture));
  for (int step = 1; step <= kSteps; ++step)
    for (const int y : {box.y + step * label.height, above - step * label.height})
      all.push_back(moved_inside({box.x, y, label.width, label.height}, picture));
  return all;
}

}  // namespace

std::vector<Rectangle> place_labels(const Rectangle& picture, std::span<const LabelledBox> labels) {
  std::vector<Rectangle> placed;
  const double whole = kMostOfPicture * static_cast<double>(area_of(picture));
  double room = whole;
  for (const LabelledBox& label : labels) {
    Rectangle best{};
    int64_t least = std::numeric_limits<int64_t>::max();
    for (const Rectangle& place : places(label, picture)) {
      const int64_t covered = shared_pixels(place, placed);
      if (covered >= least) continue;
      least = covered;
      best = place;
    }
    const auto area = static_cast<double>(area_of(best));
    // The first label is always drawn, even on a small picture.
    const bool fits = static_cast<double>(least) <= kMostOfLabel * area && (area <= room || room == whole);
    placed.push_back(fits ? best : Rectangle{});
    if (fits) room -= area;
  }
  return placed;
}

}  // namespace dtrain::mask_rcnn
