// Fixture for detector tests: a small detector, synthetic images with ground truth, and a short training.
#pragma once

#include <vector>

#include "dtrain/core/rng.h"
#include "dtrain/models/detection/detector.h"
#include "dtrain/ops/pointwise.h"
#include "dtrain/train/trainer.h"
#include "tests/testing.h"

namespace dtrain::models {

inline constexpr int64_t kScenes = 2, kSceneSide = 64, kMostObjects = 3, kRuns = 200;

// Detector with steps of a fraction of a second.
inline DetectorOptions tiny_detector(bool per_image_means = false) {
  DetectorOptions options;
  options.classes = 4;
  options.backbone = {.blocks = {1, 1, 1, 1}, .width = 16, .batch_norm = {.frozen = true}};
  options.freeze_at = 1, options.channels = 16;
  options.per_image_means = per_image_means;
  options.rpn.sizes = {8, 16, 32, 64, 128};
  options.rpn.batch = 32, options.rpn.positives = 16;
  options.rpn.training = {60, 40}, options.rpn.evaluation = {60, 30};
  options.rpn.fixed_divisor = per_image_means;
  options.box.features = 32, options.box.batch = 16, options.box.positives = 4;
  options.mask.channels = 16, options.mask.convolutions = 1, options.mask.resolution = 4;
  options.detection.score_threshold = 0.2f, options.detection.per_image = 10;
  return options;
}

struct Rectangle {
  int64_t x, y, w, h;
  int32_t kind;

  void draw(float* pixels) const {
    for (int64_t row = y; row < y + h; ++row)
      for (int64_t column = x; column < x + w; ++column) pixels[(row * kSceneSide + column) * 3 + kind] = 2;
  }
  std::vector<float> box() const {
    return {static_cast<float>(x), static_cast<float>(y), static_cast<float>(x + w), static_cast<float>(y + h)};
  }
  // Run ends of its mask.
  std::vector<int32_t> runs() const {
    std::vector<int32_t> ends;
    for (int64_t column = x; column < x + w; ++column)
      for (const int64_t end : {column * kSceneSide + y, column * kSceneSide + y + h})
        ends.push_back(static_cast<int32_t>(end));
    ends.push_back(static_cast<int32_t>(kSceneSide * kSceneSide));
    return ends;
  }
};

// Rectangles of image `number` in an endless series with varying object counts.
inline std::vector<Rectangle> rectangles_of(int64_t number) {
  RandomStream random(5, static_cast<uint64_t>(number));
  const auto below = [&](int64_t bound) { return static_cast<int64_t>(random.below(static_cast<uint32_t>(bound))); };
  std::vector<Rectangle> all;
  for (int64_t i = 0; i < 1 + number % kMostObjects; ++i) {
    const int64_t w = 10 + below(20), h = 10 + below(20);
    all.push_back({below(kSceneSide - w), below(kSceneSide - h), w, h, static_cast<int32_t>(below(3))});
  }
  return all;
}

// Rectangles whose colours encode their classes.
struct DrawnScene {
  explicit DrawnScene(Context& context, int64_t first = 0, int64_t count = kScenes) {
    std::vector<float> pixels(static_cast<size_t>(count * kSceneSide * kSceneSide * 3)), boxes, sizes;
    std::vector<int32_t> classes, counts, begins, ends;
    for (int64_t i = 0; i < count; ++i) {
      const std::vector<Rectangle> objects = rectangles_of(first + i);
      std::vector<float> own_boxes;
      std::vector<int32_t> own_classes, own_begins, own_ends;
      for (const Rectangle& object : objects) {
        object.draw(pixels.data() + i * kSceneSide * kSceneSide * 3);
        own_begins.push_back(static_cast<int32_t>(own_ends.size()));
        for (const float corner : object.box()) own_boxes.push_back(corner);
        for (const int32_t end : object.runs()) own_ends.push_back(end);
        own_classes.push_back(object.kind + 1);
      }
      append(own_boxes, 4 * kMostObjects, 0.0f, boxes);
      append(own_classes, kMostObjects, 0, classes);
      append(own_begins, kMostObjects + 1, static_cast<int32_t>(own_ends.size()), begins);
      append(own_ends, kRuns, 0, ends);
      counts.push_back(static_cast<int32_t>(objects.size()));
      sizes.insert(sizes.end(), {kSceneSide, kSceneSide});
    }
    images = to_device(context, {count, kSceneSide, kSceneSide, 3}, pixels);
    truth.sizes = to_device(context, {count, 2}, sizes);
    truth.counts = to_device(context, {count}, counts);
    truth.boxes = to_device(context, {count, kMostObjects, 4}, boxes);
    truth.classes = to_device(context, {count, kMostObjects}, classes);
    truth.masks = {to_device(context, {count, kRuns}, ends), to_device(context, {count, kMostObjects + 1}, begins),
                   truth.sizes};
  }
  // Appends `values`, padded to `room` entries.
  template <class T>
  static void append(std::vector<T> values, int64_t room, T padding, std::vector<T>& to) {
    values.resize(static_cast<size_t>(room), padding);
    to.insert(to.end(), values.begin(), values.end());
  }

  Tensor images;
  DetectionTruth truth;
};

// Losses of each step, and final parameters.
struct Trained {
  std::vector<double> losses;
  std::vector<float> parameters;
  bool operator==(const Trained&) const = default;
};

inline Trained train_detector(Context& context, int steps, bool cuda_graph, const DetectorOptions& options,
                              const std::vector<const DrawnScene*>& micro_batches, DType dtype = DType::f32) {
  ParameterStore store(context);
  const Detector detector(store, options);
  store.allocate(3, {dtype, context.is_cpu() ? 3 : static_cast<int>(16 / size_of(dtype))});
  freeze(store, options);
  const Canvas canvas = detector.canvas(context, kSceneSide, kSceneSide);
  Optimizer optimizer(store, {});
  Trainer trainer(store, optimizer, Schedule{.base = 0.01},
                  {.micro_steps = static_cast<int>(micro_batches.size()), .seed = 9, .cuda_graph = cuda_graph});
  Trained trained;
  for (int step = 0; step < steps; ++step) {
    const StepReport report = trainer.step([&](Tape& tape, int micro_step) {
      const DrawnScene& scene = *micro_batches[static_cast<size_t>(micro_step)];
      const Tensor pixels =
          normalize_pixels(context, scene.images, {.dtype = dtype, .channels = store.image_channels()});
      return detector.loss(tape, canvas, tape.constant(pixels), scene.truth);
    });
    trained.losses.push_back(report.loss);
  }
  trained.parameters = values_of<float>(context, store.values());
  return trained;
}

// Per-image means do not depend on the rest of the batch, and sampling depends on the image's index in the step.
inline void expect_micro_steps_to_stand_for_a_batch(Context& context, const DetectorOptions& options) {
  const DrawnScene both(context), first(context, 0, 1), second(context, 1, 1);
  const Trained whole = train_detector(context, 1, false, options, {&both});
  const Trained parts = train_detector(context, 1, false, options, {&first, &second});
  EXPECT_NEAR(whole.losses[0], parts.losses[0], 1e-5 * whole.losses[0]);
  ASSERT_EQ(whole.parameters.size(), parts.parameters.size());
  for (size_t i = 0; i < whole.parameters.size(); ++i) ASSERT_NEAR(whole.parameters[i], parts.parameters[i], 1e-6);
}

}  // namespace dtrain::models
