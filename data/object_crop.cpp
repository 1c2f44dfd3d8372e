#include "data/object_crop.h"

#include <algorithm>
#include <numeric>
#include <optional>

namespace dtrain::data {
namespace {

constexpr std::array kBounds = {0.0f, 0.1f, 0.3f, 0.5f, 0.7f, 0.9f};
constexpr int kCropTries = 50;

float area(const BoxFractions& box) { return (box[2] - box[0]) * (box[3] - box[1]); }

float overlap(const BoxFractions& a, const BoxFractions& b) {
  const float width = std::min(a[2], b[2]) - std::max(a[0], b[0]);
  const float height = std::min(a[3], b[3]) - std::max(a[1], b[1]);
  const float shared = std::max(width, 0.0f) * std::max(height, 0.0f);
  return shared > 0 ? shared / (area(a) + area(b) - shared) : 0.0f;
}

bool holds_centre(const BoxFractions& part, const BoxFractions& box) {
  const float x = 0.5f * (box[0] + box[2]), y = 0.5f * (box[1] + box[3]);
  return x > part[0] && x < part[2] && y > part[1] && y < part[3];
}

bool is_allowed(const BoxFractions& part, std::span<const BoxFractions> boxes, float bound) {
  const float width = part[2] - part[0], height = part[3] - part[1];
  return height < 2 * width && width < 2 * height &&
         std::ranges::all_of(boxes, [&](const BoxFractions& box) { return overlap(part, box) > bound; }) &&
         std::ranges::any_of(boxes, [&](const BoxFractions& box) { return holds_centre(part, box); });
}

// Each attempt consumes four random numbers, whatever its outcome.
std::optional<BoxFractions> last_allowed(std::span<const BoxFractions> boxes, RandomStream& random) {
  const float bound = kBounds[random.below(static_cast<uint32_t>(kBounds.size()))];
  std::optional<BoxFractions> found;
  for (int i = 0; i < kCropTries; ++i) {
    const float width = random.uniform(0.3f, 1), height = random.uniform(0.3f, 1);
    const float left = random.uniform(0, 1 - width), top = random.uniform(0, 1 - height);
    const BoxFractions part{left, top, left + width, top + height};
    if (is_allowed(part, boxes, bound)) found = part;
  }
  return found;
}

}  // namespace

Window ObjectCrop::window(int width, int height) const {
  const auto w = static_cast<float>(width), h = static_cast<float>(height);
  const int across = std::clamp(static_cast<int>((part[2] - part[0]) * w), 1, width);
  const int down = std::clamp(static_cast<int>((part[3] - part[1]) * h), 1, height);
  return {std::min(static_cast<int>(part[0] * (w - 1)), width - across),
          std::min(static_cast<int>(part[1] * (h - 1)), height - down), across, down};
}

BoxFractions ObjectCrop::box_in_part(const BoxFractions& box) const {
  BoxFractions result{};
  for (size_t i = 0; i < 4; ++i) {
    const float begin = part[i % 2], end = part[i % 2 + 2];
    result[i] = (std::clamp(box[i], begin, end) - begin) / (end - begin);
  }
  return result;
}

ObjectCrop sample_object_crop(std::span<const BoxFractions> boxes, RandomStream& random) {
  ObjectCrop crop;
  while (random.below(static_cast<uint32_t>(kBounds.size()) + 1) != 0) {
    const auto part = last_allowed(boxes, random);
    if (!part) continue;
    crop.part = *part;
    for (size_t i = 0; i < boxes.size(); ++i)
      if (holds_centre(crop.part, boxes[i])) crop.objects.push_back(i);
    return crop;
  }
  crop.objects.resize(boxes.size());
  std::iota(crop.objects.begin(), crop.objects.end(), size_t{0});
  return crop;
}

}  // namespace dtrain::data
