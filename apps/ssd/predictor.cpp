#include "apps/ssd/predictor.h"

#include <fmt/format.h>

#include "apps/cli/messages.h"
#include "apps/cli/vision.h"
#include "apps/detection/placed_image.h"
#include "data/coco_categories.h"
#include "dtrain/train/weights.h"

namespace dtrain::ssd {
namespace {

std::vector<data::coco::Category> named(const std::vector<data::coco::Category>& known, const std::string& source) {
  std::vector<data::coco::Category> categories;
  for (const int64_t id : data::coco_category_ids()) categories.push_back({id, fmt::format("category {}", id)});
  const std::vector<uint32_t> places = data::places_in_coco(known, source);
  for (size_t i = 0; i < known.size(); ++i) categories[places[i]].name = known[i].name;
  return categories;
}

// Images with the preprocessing of training.
PixelNormalization normalization_for(const cli::Machine& machine, const ParameterStore& store) {
  data::Pixels pixels;
  pixels.dataset = kDataset;
  PixelNormalization normalization = cli::normalization_of(pixels);
  normalization.dtype = machine.precision;
  normalization.channels = store.image_channels();
  return normalization;
}

}  // namespace

Predictor::Predictor(const std::string& weights, const cli::Machine& machine,
                     const std::vector<data::coco::Category>& known, const std::string& source)
    : categories_(named(known, source)),
      context_(machine.make_context()),
      store_(*context_),
      model_(store_, /*statistics=*/nullptr) {
  ComputeOptions compute = machine.compute();
  compute.gradients = false;
  store_.allocate(/*seed=*/0, compute);
  const WeightReport report = load_weights(store_, weights, Fault::checkpoint);
  for (const std::string& notice : report.conversions())
    cli::print_message("note", fmt::format("{}: {}", weights, notice));
  if (!report.missing.empty() || !report.mismatched.empty())
    throw Error(Fault::checkpoint, fmt::format("{}: does not fit {}: {}", weights, kName, report.summary()));
  model_.normalize_by(normalization_for(machine, store_));
}

std::vector<data::coco::Detection> Predictor::objects_in(const data::Image& image) {
  constexpr data::ImageSize kSquare{models::kSsdSide, models::kSsdSide};
  const detection::PlacedImage placed =
      detection::place_image(*context_, image, detection::placement_of({image.height, image.width}, kSquare, kSquare));
  Tape tape(*context_, prepared_);
  const models::Detections found = model_.detect(tape, {.fields = {placed.pixels}});
  return std::move(detection::detections_of(*context_, found, {placed.place}, categories_, {}).front());
}

}  // namespace dtrain::ssd
