#include "apps/ssd/model.h"

#include <vector>

#include <fmt/format.h>

#include "dtrain/core/rng.h"
#include "dtrain/models/ssd300_weights.h"

namespace dtrain::ssd {
namespace {

constexpr double kTrainingImages = 118287;  // of COCO 2017, which tf_cnn_benchmarks assumes for any data
constexpr int64_t kReferenceBatch = 32, kMostObjects = 10;

models::SsdOptions options_of(Communicator* statistics) {
  models::SsdOptions options;
  options.batch_norm.communicator = statistics;
  return options;
}

// Output pixels of the convolution with this weight name.
int64_t pixels_of(const std::string& weight) {
  struct Layers {
    const char* path;
    int64_t side;
  };
  constexpr Layers kLayers[] = {{"conv1.", 150},
                                {"layer1.", 75},
                                {"layer", 38},
                                {"additional_blocks.0.0.", 38},
                                {"additional_blocks.0.", 19},
                                {"additional_blocks.1.0.", 19},
                                {"additional_blocks.1.", 10},
                                {"additional_blocks.2.0.", 10},
                                {"additional_blocks.2.", 5},
                                {"additional_blocks.3.0.", 5},
                                {"additional_blocks.3.", 3},
                                {"additional_blocks.4.0.", 3}};
  for (const auto& [path, side] : kLayers)
    if (weight.starts_with(path)) return side * side;
  constexpr int64_t kMaps[] = {38, 19, 10, 5, 3, 1};
  for (size_t map = 0; map < std::size(kMaps); ++map)
    if (weight == fmt::format("loc.{}.weight", map) || weight == fmt::format("conf.{}.weight", map))
      return kMaps[map] * kMaps[map];
  return 1;
}

template <class T>
Tensor uploaded(Context& context, const Shape& shape, const std::vector<T>& values) {
  const Tensor tensor = context.empty(shape, dtype_of<T>());
  context.upload(values.data(), tensor);
  return tensor;
}

// Sides are 0.1 to 0.5 of the image's.
std::vector<float> random_box(RandomStream& random) {
  const auto side = static_cast<float>(models::kSsdSide);
  const float width = side * random.uniform(0.1f, 0.5f), height = side * random.uniform(0.1f, 0.5f);
  const float left = random.uniform(0, side - width), top = random.uniform(0, side - height);
  return {left, top, left + width, top + height};
}

}  // namespace

models::ClassifierInfo info() {
  return {.name = kName,
          .dataset = kDataset,
          .image_size = models::kSsdSide,
          .classes = models::SsdOptions().classes,
          .batch_size = kReferenceBatch};
}

Schedule schedule(int64_t batch) {
  const double base = 1e-3 * static_cast<double>(batch) / static_cast<double>(kReferenceBatch);
  const auto steps = [&](int64_t of_reference) { return static_cast<double>(of_reference * kReferenceBatch / batch); };
  Schedule schedule =
      Schedule::piecewise(base, {steps(160'000), steps(200'000)}, {0.1 * base, 0.01 * base}, /*steps_per_epoch=*/1);
  schedule.warmup_epochs = static_cast<double>(static_cast<int64_t>(kTrainingImages / static_cast<double>(batch) * 5));
  return schedule;
}

Model::Model(ParameterStore& store, Communicator* statistics) : store_(store), ssd_(store, options_of(statistics)) {}

std::string Model::load_backbone(const std::string& path) {
  return models::load_ssd_backbone(store_, ssd_.options(), path, Fault::checkpoint);
}

int64_t Model::multiply_adds() const {
  int64_t sum = 0;
  for (const Parameter& parameter : store_.parameters())
    if (parameter.shape.rank() == 4) sum += parameter.shape.count() * pixels_of(parameter.name);
  return sum;
}

Var Model::network_input(Tape& tape, const detection::DeviceBatch& batch) const {
  return tape.constant(normalize_pixels(store_.context(), batch.images(), pixels_));
}

Loss Model::loss(Tape& tape, const detection::DeviceBatch& batch) {
  return ssd_.loss(tape, network_input(tape, batch), batch.truth());
}

models::Detections Model::detect(Tape& tape, const detection::DeviceBatch& batch) {
  return ssd_.detect(tape, network_input(tape, batch));
}

detection::DeviceBatch Model::synthetic_batch(int64_t rows, uint64_t seed) {
  Context& context = store_.context();
  RandomStream random(seed, /*stream=*/0x73796e7468);
  const int64_t side = models::kSsdSide;
  const auto count = static_cast<size_t>(rows);
  std::vector<float> pixels(count * static_cast<size_t>(side * side * 3)), boxes;
  for (float& pixel : pixels) pixel = random.uniform();
  std::vector<int32_t> counts, classes;
  for (size_t row = 0; row < count; ++row) {
    counts.push_back(1 + static_cast<int32_t>(random.below(kMostObjects)));
    for (int64_t i = 0; i < kMostObjects; ++i) {
      const bool there = i < counts.back();
      const std::vector<float> box = random_box(random);
      const auto category = 1 + static_cast<int32_t>(random.below(static_cast<uint32_t>(ssd_.options().classes - 1)));
      for (const float edge : box) boxes.push_back(there ? edge : 0);
      classes.push_back(there ? category : 0);
    }
  }
  using Fields = data::DetectionFields;
  detection::DeviceBatch batch{.canvas = "synthetic"};
  batch.fields.resize(Fields::run_ends + 1);
  batch.fields[Fields::images] = uploaded(context, {rows, side, side, 3}, pixels);
  batch.fields[Fields::sizes] = uploaded(context, {rows, 2}, std::vector<float>(2 * count, static_cast<float>(side)));
  batch.fields[Fields::count] = uploaded(context, {rows}, counts);
  batch.fields[Fields::boxes] = uploaded(context, {rows, kMostObjects, 4}, boxes);
  batch.fields[Fields::classes] = uploaded(context, {rows, kMostObjects}, classes);
  return batch;
}

}  // namespace dtrain::ssd
