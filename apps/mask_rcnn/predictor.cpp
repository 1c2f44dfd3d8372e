#include "apps/mask_rcnn/predictor.h"

#include <fmt/format.h>

#include "apps/mask_rcnn/loaded_detector.h"

namespace dtrain::mask_rcnn {
namespace {

// Number of classes of the weights.
Settings with_classes_of_weights(Settings settings) {
  take_classes(settings, settings.weights);
  return settings;
}

std::vector<data::coco::Category> categories_of(std::vector<data::coco::Category> known, const std::string& source,
                                                int64_t classes) {
  std::vector<data::coco::Category> categories;
  for (int64_t i = 1; i < classes; ++i) categories.push_back({i, fmt::format("class {}", i)});
  if (known.size() == categories.size()) return known;
  for (const data::coco::Category& category : known) {
    if (category.id < 1 || category.id >= classes)
      throw Error(Fault::data,
                  fmt::format("{}: {} categories, for a model of {} classes", source, known.size(), categories.size()));
    categories[static_cast<size_t>(category.id) - 1].name = category.name;
  }
  return categories;
}

}  // namespace

detection::Placement evaluation_placement(const data::ImageSize& image, const DataSettings& settings) {
  const data::ResizeRule& rule = settings.evaluation_resize;
  constexpr int64_t kSideMultiple = 32;
  const auto padded = [](int64_t side) { return (side + kSideMultiple - 1) / kSideMultiple * kSideMultiple; };
  const data::ImageSize size = data::resized(image, rule.max_short_edge, rule);
  return detection::placement_of(image, size, {padded(size.height), padded(size.width)}, rule.rounds_pixels);
}

Predictor::Predictor(Settings settings, const cli::Machine& machine, std::vector<data::coco::Category> known,
                     const std::string& source)
    : settings_(with_classes_of_weights(std::move(settings))),
      categories_(categories_of(std::move(known), source, settings_.detector.classes)),
      model_(settings_, machine, 0, /*gradients=*/false) {
  print_conversions(model_.load(settings_.weights, /*complete=*/true), settings_.weights);
}

detection::PlacedImage Predictor::place(data::Image image) const {
  const detection::Placement placement = evaluation_placement({image.height, image.width}, settings_.data);
  return detection::place_image(context(), std::move(image), placement);
}

models::Detections Predictor::detect(const detection::PlacedImage& image, std::function<void(const char*)> watch) {
  Tape tape(*model_.context, prepared_);
  tape.on_part(std::move(watch));
  const models::Canvas& canvas = model_.canvas(image.pixels.dim(1), image.pixels.dim(2));
  return model_.detector.detect(tape, canvas, model_.pixels(tape, image.pixels, image.sizes), image.sizes);
}

std::vector<data::coco::Detection> Predictor::in_file(const models::Detections& found,
                                                      const detection::ImagePlace& place) const {
  return std::move(detection::detections_of(*model_.context, found, {place}, categories_, settings_.paste()).front());
}

std::vector<data::coco::Detection> Predictor::objects_in(const data::Image& image) {
  const detection::PlacedImage placed = place(image);
  return in_file(detect(placed), placed.place);
}

}  // namespace dtrain::mask_rcnn
