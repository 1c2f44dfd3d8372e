#include "data/coco/overlap.h"

#include <algorithm>
#include <cmath>

#include "dtrain/core/error.h"

namespace dtrain::data::coco {
namespace {

std::vector<Shape::Span> spans_of(const Rle& rle) {
  std::vector<Shape::Span> spans;
  spans.reserve(rle.counts.size() / 2);
  uint32_t at = 0;
  for (size_t i = 0; i < rle.counts.size(); ++i) {
    const uint32_t begin = at;
    at += rle.counts[i];
    if (i % 2 == 1 && at > begin) spans.push_back({begin, at});
  }
  return spans;
}

BoundingBox box_around(std::span<const Shape::Span> spans, uint32_t height) {
  if (spans.empty()) return {};
  const uint32_t left = spans.front().begin / height, right = (spans.back().end - 1) / height;
  uint32_t top = height - 1, bottom = 0;
  for (const Shape::Span span : spans) {
    const uint32_t last = span.end - 1;
    const bool one_column = span.begin / height == last / height;
    top = std::min(top, one_column ? span.begin % height : 0);
    bottom = std::max(bottom, one_column ? last % height : height - 1);
  }
  return {double(left), double(top), double(right - left + 1), double(bottom - top + 1)};
}

uint64_t intersection(std::span<const Shape::Span> a, std::span<const Shape::Span> b) {
  uint64_t pixels = 0;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const uint32_t begin = std::max(a[i].begin, b[j].begin), end = std::min(a[i].end, b[j].end);
    if (begin < end) pixels += end - begin;
    const bool a_is_first = a[i].end < b[j].end;
    i += a_is_first;
    j += !a_is_first;
  }
  return pixels;
}

// Length of the intersection of two ranges; not positive if they are disjoint. NaN in one operand selects the other, as
// in pycocotools.
double common(double a, double a_size, double b, double b_size) {
  return std::fmin(a + a_size, b + b_size) - std::fmax(a, b);
}

template <class Item>
std::vector<double> all_ious(std::span<const Item> detections, std::span<const Item> truths,
                             std::span<const uint8_t> crowd) {
  DT_CHECK(crowd.size() == truths.size(), "iou: ", crowd.size(), " crowd flags for ", truths.size(), " truths");
  std::vector<double> values;
  values.reserve(detections.size() * truths.size());
  for (const Item& detection : detections)
    for (size_t i = 0; i < truths.size(); ++i) values.push_back(iou(detection, truths[i], crowd[i] != 0));
  return values;
}

}  // namespace

Shape::Shape(const Rle& rle) {
  check(rle);
  spans = spans_of(rle);
  box = box_around(spans, static_cast<uint32_t>(rle.height));
  area = coco::area(rle);
}

double iou(const BoundingBox& detection, const BoundingBox& truth, bool crowd) {
  const double width = common(detection.x, detection.width, truth.x, truth.width);
  const double height = common(detection.y, detection.height, truth.y, truth.height);
  if (width <= 0 || height <= 0) return 0;
  const double area = detection.width * detection.height, both = width * height;
  return both / (crowd ? area : area + truth.width * truth.height - both);
}

double iou(const Shape& detection, const Shape& truth, bool crowd) {
  const BoundingBox &a = detection.box, &b = truth.box;
  if (!(common(a.x, a.width, b.x, b.width) > 0 && common(a.y, a.height, b.y, b.height) > 0)) return 0;
  const uint64_t both = intersection(detection.spans, truth.spans);
  if (both == 0) return 0;
  return static_cast<double>(both) / static_cast<double>(crowd ? detection.area : detection.area + truth.area - both);
}

std::vector<double> iou(std::span<const Rle> detections, std::span<const Rle> truths, std::span<const uint8_t> crowd) {
  if (detections.empty() || truths.empty()) return {};
  std::vector<Shape> shapes;
  shapes.reserve(detections.size() + truths.size());
  for (const std::span<const Rle> masks : {detections, truths})
    for (const Rle& mask : masks) {
      check_same_size(mask, detections[0]);
      shapes.emplace_back(mask);
    }
  const std::span<const Shape> all(shapes);
  return all_ious(all.first(detections.size()), all.subspan(detections.size()), crowd);
}

std::vector<double> iou(std::span<const BoundingBox> detections, std::span<const BoundingBox> truths,
                        std::span<const uint8_t> crowd) {
  return all_ious(detections, truths, crowd);
}

}  // namespace dtrain::data::coco
