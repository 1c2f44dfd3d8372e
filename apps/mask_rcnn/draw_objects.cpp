#include "apps/mask_rcnn/draw_objects.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "apps/mask_rcnn/text.h"
#include "dtrain/core/error.h"

namespace dtrain::mask_rcnn {
namespace {

constexpr double kMaskOpacity = 0.36, kShadow = 0.45;

// Pixels of a box within the picture; may be empty. A thin box is at least one pixel wide.
Rectangle pixels_of(const data::coco::BoundingBox& box, const Rectangle& picture) {
  const double x2 = box.x + box.width, y2 = box.y + box.height;
  if (!std::isfinite(x2) || !std::isfinite(y2) || !(box.width > 0) || !(box.height > 0)) return {};
  if (x2 <= 0 || y2 <= 0 || box.x >= picture.width || box.y >= picture.height) return {};
  const auto pixel = [](double x, int side) { return static_cast<int>(std::lround(std::clamp<double>(x, 0, side))); };
  const int x = std::min(pixel(box.x, picture.width), picture.width - 1);
  const int y = std::min(pixel(box.y, picture.height), picture.height - 1);
  return {x, y, std::max(1, pixel(x2, picture.width) - x), std::max(1, pixel(y2, picture.height) - y)};
}

// City-block distance transform of a mask's bounding box: for each pixel the distance to the nearest pixel outside the
// mask, up to `most`. Pixels beyond the picture count as inside, so that truncated objects have no outline there.
struct Depths {
  Rectangle area{};
  std::vector<uint8_t> values{};  // [height * width], 0 outside the mask

  uint8_t at(int x, int y) const { return values[index(x, y)]; }
  size_t index(int x, int y) const {
    return static_cast<size_t>(y) * static_cast<size_t>(area.width) + static_cast<size_t>(x);
  }
  // Propagates the distance from the neighbours in this direction.
  void visit(int x, int y, int step, uint8_t most) {
    uint8_t& here = values[index(x, y)];
    const auto next = [&](int column, int row) {
      const bool inside = column >= 0 && column < area.width && row >= 0 && row < area.height;
      return inside ? at(column, row) : most;
    };
    const int least = std::min(next(x + step, y), next(x, y + step));
    if (here != 0) here = static_cast<uint8_t>(std::min<int>(here, least + 1));
  }
};

Depths depths_of(const data::coco::Rle& mask, const Rectangle& picture, uint8_t most) {
  const data::coco::BoundingBox around = bounds(mask);
  const auto x = static_cast<int>(around.x), y = static_cast<int>(around.y);
  // With a border of pixels outside the mask, if within the picture.
  const Rectangle grown{x - 1, y - 1, static_cast<int>(around.width) + 2, static_cast<int>(around.height) + 2};
  Depths depths{intersection(grown, picture)};
  const std::vector<uint8_t> pixels = decode(mask);
  const Rectangle& area = depths.area;
  for (int row = area.y; row < area.bottom(); ++row)
    for (int column = area.x; column < area.right(); ++column)
      depths.values.push_back(
          pixels[static_cast<size_t>(row) * static_cast<size_t>(picture.width) + static_cast<size_t>(column)] != 0
              ? most
              : 0);
  for (int row = 0; row < area.height; ++row)
    for (int column = 0; column < area.width; ++column) depths.visit(column, row, -1, most);
  for (int row = area.height - 1; row >= 0; --row)
    for (int column = area.width - 1; column >= 0; --column) depths.visit(column, row, 1, most);
  return depths;
}

void draw_mask(Canvas& canvas, const data::coco::Rle& mask, Color color) {
  DT_CHECK(mask.width == canvas.width() && mask.height == canvas.height(), "a mask of ", mask.width, "x", mask.height,
           " pixels does not fit a picture of ", canvas.width(), "x", canvas.height());
  const int line = std::min(canvas.line_width(), 100);
  const Depths depths = depths_of(mask, canvas.bounds(), static_cast<uint8_t>(line + 1));
  for (int y = 0; y < depths.area.height; ++y)
    for (int x = 0; x < depths.area.width; ++x)
      if (const int depth = depths.at(x, y); depth != 0)
        canvas.blend(depths.area.x + x, depths.area.y + y, color, depth <= line ? 1 : kMaskOpacity);
}

// A line in the object's colour between two dark lines, for contrast.
void draw_box(Canvas& canvas, const Rectangle& box, Color color) {
  const int line = canvas.line_width(), edge = std::max(1, line / 3);
  canvas.frame({box.x - edge, box.y - edge, box.width + 2 * edge, box.height + 2 * edge}, edge, kBlack, kShadow);
  const Rectangle within{box.x + line, box.y + line, box.width - 2 * line, box.height - 2 * line};
  if (line > 1) canvas.frame(within, edge, kBlack, kShadow);
  canvas.frame(box, line, color);
}

struct Padding {
  int beside = 0, above = 0;
};

Padding padding_of(double scale) {
  return {static_cast<int>(std::lround(2 * scale)), std::max(2, static_cast<int>(std::lround(1.5 * scale)))};
}

// Size of a label.
LabelledBox chip_of(const Rectangle& box, const std::string& text, double scale) {
  if (text.empty()) return {};
  const Padding padding = padding_of(scale);
  return {box, text_width(text, scale) + 2 * padding.beside,
          text_height(scale) + 2 * padding.above - static_cast<int>(scale)};
}

// Draws a line to the box if the label does not touch it.
void draw_label(Canvas& canvas, const Rectangle& chip, const Rectangle& box, const std::string& text, Color color) {
  const double scale = canvas.text_scale();
  const int line = canvas.line_width(), x = std::clamp(box.x, chip.x, chip.right() - line);
  canvas.fill({x, chip.bottom(), line, box.y - chip.bottom()}, color);
  canvas.fill({x, box.bottom(), line, chip.y - box.bottom()}, color);
  const int edge = std::max(1, line / 3);
  canvas.fill(chip, color);
  canvas.frame({chip.x - edge, chip.y - edge, chip.width + 2 * edge, chip.height + 2 * edge}, edge, kBlack, kShadow);
  const Padding padding = padding_of(scale);
  draw_text(canvas, chip.x + padding.beside, chip.y + padding.above, text, scale, text_color(color));
}

}  // namespace

std::string score_label(const std::string& name, double score) { return fmt::format("{} {:.2f}", name, score); }

std::vector<DrawnObject> annotated_objects(const data::coco::Annotations& truth, size_t image, int height, int width) {
  std::vector<DrawnObject> objects;
  for (const data::coco::Annotation& annotation : truth.of(image)) {
    DrawnObject& object = objects.emplace_back();
    object.box = annotation.box;
    object.object_class = int64_t{annotation.category} + 1;
    object.label = truth.categories[annotation.category].name + (annotation.is_crowd ? " (crowd)" : "");
    if (!std::holds_alternative<std::monostate>(annotation.segmentation))
      object.mask = mask_of(annotation, height, width);
  }
  return objects;
}

std::vector<DrawnObject> found_objects(std::span<const data::coco::Detection> found,
                                       const std::vector<data::coco::Category>& categories, double least_score) {
  std::vector<DrawnObject> objects;
  for (const data::coco::Detection& one : found) {
    const auto category = std::ranges::find(categories, one.category_id, &data::coco::Category::id);
    if (one.score < least_score || category == categories.end()) continue;
    objects.push_back({one.box ? *one.box : bounds(*one.mask), one.mask, category - categories.begin() + 1,
                       score_label(category->name, one.score)});
  }
  return objects;
}

void draw_objects(Canvas& canvas, std::span<const DrawnObject> objects) {
  const double scale = canvas.text_scale();
  const int text_room = canvas.width() - 2 * padding_of(scale).beside;
  std::vector<Rectangle> boxes;
  std::vector<std::string> texts;
  std::vector<LabelledBox> labels;
  for (const DrawnObject& object : objects) {
    boxes.push_back(pixels_of(object.box, canvas.bounds()));
    texts.push_back(boxes.back().empty() ? "" : shortened(object.label, scale, text_room));
    labels.push_back(chip_of(boxes.back(), texts.back(), scale));
  }
  std::vector<size_t> order(objects.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return int64_t{boxes[a].width} * boxes[a].height > int64_t{boxes[b].width} * boxes[b].height;
  });
  for (const size_t i : order)
    if (objects[i].mask) draw_mask(canvas, *objects[i].mask, color_of_class(objects[i].object_class));
  for (const size_t i : order)
    if (!boxes[i].empty()) draw_box(canvas, boxes[i], color_of_class(objects[i].object_class));
  const std::vector<Rectangle> chips = place_labels(canvas.bounds(), labels);
  for (size_t i = objects.size(); i-- > 0;)
    if (!chips[i].empty()) draw_label(canvas, chips[i], boxes[i], texts[i], color_of_class(objects[i].object_class));
}

}  // namespace dtrain::mask_rcnn
