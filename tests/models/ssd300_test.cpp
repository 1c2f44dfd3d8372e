// SSD300: published default boxes, loss and detections against double-precision references, and short trainings.
#include "dtrain/models/ssd300.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "dtrain/ops/pointwise.h"
#include "dtrain/train/trainer.h"
#include "tests/testing.h"

namespace dtrain::models {
namespace {

void expect_box(const std::array<float, 4>& box, const std::array<double, 4>& fractions) {
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(box[i], 300 * fractions[i], 1e-3) << i;
}

TEST(Ssd300, DefaultBoxesMatchReference) {
  const auto boxes = ssd_default_boxes();
  ASSERT_EQ(boxes.size(), static_cast<size_t>(kSsdBoxes));
  // Centre, width and height of the first box, the second box of the first row, and the first box of the second shape.
  const auto around = [](double x, double y, double w, double h) {
    return std::array{x - w / 2, y - h / 2, x + w / 2, y + h / 2};
  };
  expect_box(boxes[0], around(4 / 300.0, 4 / 300.0, 0.07, 0.07));
  expect_box(boxes[1], around(12 / 300.0, 4 / 300.0, 0.07, 0.07));
  const double mean = std::sqrt(0.07 * 0.15);
  expect_box(boxes[38 * 38], around(4 / 300.0, 4 / 300.0, mean, mean));
  expect_box(boxes[2 * 38 * 38], around(4 / 300.0, 4 / 300.0, 0.07 * std::sqrt(2), 0.07 / std::sqrt(2)));
  expect_box(boxes[3 * 38 * 38], around(4 / 300.0, 4 / 300.0, 0.07 / std::sqrt(2), 0.07 * std::sqrt(2)));
  // The last map has one cell; wide boxes are clipped to the image.
  expect_box(boxes[8728], around(0.5, 0.5, 0.87, 0.87));
  expect_box(boxes[8730], around(0.5, 0.5, 1, 0.87 / std::sqrt(2)));
}

TEST(Ssd300, HeadOrderIsAPermutation) {
  std::vector<int32_t> order = ssd_head_order();
  EXPECT_EQ(order[0], 0);
  EXPECT_EQ(order[1], 38 * 38);  // next shape of the first cell
  EXPECT_EQ(order[4], 1);        // next cell
  std::ranges::sort(order);
  std::vector<int32_t> all(static_cast<size_t>(kSsdBoxes));
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(order, all);
}

DetectionTruth one_object(Context& context, const std::vector<float>& box, int32_t kind) {
  DetectionTruth truth;
  truth.counts = to_device(context, {1}, std::vector<int32_t>{1});
  truth.boxes = to_device(context, {1, 1, 4}, box);
  truth.classes = to_device(context, {1, 1}, std::vector<int32_t>{kind});
  return truth;
}

// The object equals a default box and all outputs are 0: each selected box costs log(classes), and the matched box the
// distance of its target deltas from 0.
TEST(Ssd300, LossOfZeroOutputs) {
  for (const auto& context : devices()) {
    ParameterStore store(*context);
    const Ssd300 model(store, {.classes = 3});
    const std::array<float, 4> own = ssd_default_boxes()[8728];
    Tape tape(*context);
    const Ssd300::Output output{tape.variable(context->zeros({1, kSsdBoxes, 4})),
                                tape.variable(context->zeros({1, kSsdBoxes, 3}))};
    const Loss loss = model.loss(tape, output, one_object(*context, {own.begin(), own.end()}, 2));
    double positives = 0, boxes = 0;
    for (const std::array<float, 4>& box : ssd_default_boxes()) {
      const auto at = [&](size_t i) { return double{box[i]}; };
      const double w = at(2) - at(0), h = at(3) - at(1), W = double{own[2]} - own[0], H = double{own[3]} - own[1];
      const double shared_w = std::max(0.0, std::min(at(2), double{own[2]}) - std::max(at(0), double{own[0]}));
      const double shared_h = std::max(0.0, std::min(at(3), double{own[3]}) - std::max(at(1), double{own[1]}));
      if (shared_w * shared_h / (w * h + W * H - shared_w * shared_h) < 0.5) continue;
      ++positives;
      const double deltas[] = {10 * (150 - (at(0) + at(2)) / 2) / w, 10 * (150 - (at(1) + at(3)) / 2) / h,
                               5 * std::log(W / w), 5 * std::log(H / h)};
      for (const double d : deltas) boxes += std::abs(d) < 1 ? d * d / 2 : std::abs(d) - 0.5;
    }
    ASSERT_GT(positives, 1);
    const std::vector<float> class_loss = values_of<float>(*context, loss.metrics[0].sum);
    const std::vector<float> box_loss = values_of<float>(*context, loss.metrics[1].sum);
    EXPECT_NEAR(class_loss[0], 4 * std::log(3.0), 1e-5);
    EXPECT_NEAR(box_loss[0], boxes / positives, 1e-4 * boxes / positives);
    EXPECT_NEAR(values_of<float>(*context, loss.total.value)[0], class_loss[0] + box_loss[0], 1e-4);
  }
}

TEST(Ssd300, DecodesDetections) {
  for (const auto& context : devices()) {
    ParameterStore store(*context);
    const Ssd300 model(store, {.classes = 3});
    const std::vector<int32_t> order = ssd_head_order();
    const auto head = [&](int32_t number) { return std::ranges::find(order, number) - order.begin(); };
    std::vector<float> logits(static_cast<size_t>(3 * kSsdBoxes), 0.0f);
    for (size_t i = 0; i < logits.size(); i += 3) logits[i] = 10;
    const auto say = [&](int32_t number, size_t kind, float logit) {
      logits[3 * static_cast<size_t>(head(number)) + kind] = logit;
    };
    say(8728, 2, 14);
    say(8729, 2, 13);  // same class, nearly the same position
    say(0, 1, 12);
    Tape tape(*context, Mode::eval);
    const Detections found = model.detect(*context, {tape.constant(context->zeros({1, kSsdBoxes, 4})),
                                                     tape.constant(to_device(*context, {1, kSsdBoxes, 3}, logits))});
    ASSERT_EQ(values_of<int32_t>(*context, found.counts), std::vector<int32_t>{2});
    const std::vector<float> boxes = values_of<float>(*context, found.boxes);
    const std::vector<int32_t> classes = values_of<int32_t>(*context, found.classes);
    EXPECT_EQ(classes[0], 2);
    EXPECT_EQ(classes[1], 1);
    const auto all = ssd_default_boxes();
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_NEAR(boxes[i], all[8728][i], 1e-3);
      EXPECT_NEAR(boxes[4 + i], all[0][i], 1e-3);
    }
  }
}

using Corners = std::array<double, 4>;

double overlap(const Corners& a, const Corners& b) {
  const auto area = [](const Corners& box) { return (box[2] - box[0]) * (box[3] - box[1]); };
  const double w = std::min(a[2], b[2]) - std::max(a[0], b[0]), h = std::min(a[3], b[3]) - std::max(a[1], b[1]);
  const double shared = std::max(w, 0.0) * std::max(h, 0.0);
  return shared / (area(a) + area(b) - shared);
}

struct Scored {
  double score;
  int32_t kind;
  Corners box;
};

void sort_by_score(std::vector<Scored>& boxes) { std::ranges::stable_sort(boxes, std::greater<>(), &Scored::score); }

// tf_cnn_benchmarks' decode_single for one class: score threshold, then greedy non-maximum suppression.
std::vector<Scored> naive_suppressed(std::vector<Scored> boxes, const SsdOptions& options) {
  sort_by_score(boxes);
  if (boxes.size() > static_cast<size_t>(options.per_class)) boxes.resize(static_cast<size_t>(options.per_class));
  std::vector<Scored> kept;
  for (const Scored& one : boxes)
    if (std::ranges::none_of(kept, [&](const Scored& k) { return overlap(k.box, one.box) > options.nms_threshold; }))
      kept.push_back(one);
  return kept;
}

Corners naive_decoded(const std::array<float, 4>& from, const float* deltas) {
  const double w = double{from[2]} - from[0], h = double{from[3]} - from[1];
  const double x = from[0] + w / 2 + w * deltas[0] / 10, y = from[1] + h / 2 + h * deltas[1] / 10;
  const double half_w = w * std::exp(deltas[2] / 5.0) / 2, half_h = h * std::exp(deltas[3] / 5.0) / 2;
  return {x - half_w, y - half_h, x + half_w, y + half_h};
}

// Detections of one image, in the order of the heads' outputs.
std::vector<Scored> naive_detections(const Array& logits, const Array& deltas, const SsdOptions& options) {
  const auto boxes = ssd_default_boxes();
  const std::vector<int32_t> order = ssd_head_order();
  std::vector<std::vector<Scored>> candidates(static_cast<size_t>(options.classes));
  for (int64_t i = 0; i < kSsdBoxes; ++i) {
    double sum = 0;
    for (int64_t kind = 0; kind < options.classes; ++kind) sum += std::exp(logits[i * options.classes + kind]);
    float own[4];
    for (int64_t j = 0; j < 4; ++j) own[j] = static_cast<float>(deltas[4 * i + j]);
    const auto& from = boxes[static_cast<size_t>(order[static_cast<size_t>(i)])];
    for (int32_t kind = 1; kind < options.classes; ++kind)
      if (const double score = std::exp(logits[i * options.classes + kind]) / sum; score > options.score_threshold)
        candidates[static_cast<size_t>(kind)].push_back({score, kind, naive_decoded(from, own)});
  }
  std::vector<Scored> found;
  for (const std::vector<Scored>& of_class : candidates)
    for (const Scored& one : naive_suppressed(of_class, options)) found.push_back(one);
  sort_by_score(found);
  if (found.size() > static_cast<size_t>(options.per_image)) found.resize(static_cast<size_t>(options.per_image));
  return found;
}

// Both top-k limits take effect; the second image has the same boxes with permuted scores.
TEST(Ssd300, AppliesTopKPerClassAndImage) {
  const SsdOptions options{
      .classes = 3, .blocks = {1, 1, 1}, .score_threshold = 0.6f, .per_class = 40, .per_image = 50};
  const Array logits = random_array({2, kSsdBoxes, 3}, 5, -2, 2), deltas = random_array({2, kSsdBoxes, 4}, 6, -2, 2);
  for (const auto& context : devices()) {
    ParameterStore store(*context);
    const Ssd300 model(store, options);
    Tape tape(*context, Mode::eval);
    const Detections found = model.detect(
        *context, {tape.constant(to_device(*context, deltas)), tape.constant(to_device(*context, logits))});
    const auto boxes = values_of<float>(*context, found.boxes), scores = values_of<float>(*context, found.scores);
    const auto classes = values_of<int32_t>(*context, found.classes);
    const auto counts = values_of<int32_t>(*context, found.counts);
    for (int64_t image = 0; image < 2; ++image) {
      Array own_logits({kSsdBoxes, 3}), own_deltas({kSsdBoxes, 4});
      for (int64_t i = 0; i < own_logits.count(); ++i) own_logits[i] = logits[image * own_logits.count() + i];
      for (int64_t i = 0; i < own_deltas.count(); ++i) own_deltas[i] = deltas[image * own_deltas.count() + i];
      const std::vector<Scored> expected = naive_detections(own_logits, own_deltas, options);
      ASSERT_EQ(counts[static_cast<size_t>(image)], 50);
      ASSERT_EQ(expected.size(), 50u);
      for (size_t i = 0; i < expected.size(); ++i) {
        const size_t at = static_cast<size_t>(image) * 50 + i;
        EXPECT_EQ(classes[at], expected[i].kind) << i;
        EXPECT_NEAR(scores[at], expected[i].score, 1e-5) << i;
        for (size_t j = 0; j < 4; ++j) EXPECT_NEAR(boxes[4 * at + j], expected[i].box[j], 1e-3) << i;
      }
    }
  }
}

TEST(Ssd300, EmptyImagesHaveZeroLoss) {
  for (const auto& context : devices()) {
    ParameterStore store(*context);
    const Ssd300 model(store, {.classes = 3, .blocks = {1, 1, 1}});
    Tape tape(*context);
    const Ssd300::Output output{tape.variable(context->zeros({1, kSsdBoxes, 4})),
                                tape.variable(context->zeros({1, kSsdBoxes, 3}))};
    DetectionTruth truth = one_object(*context, {10, 20, 10, 40}, 1);  // zero area
    EXPECT_EQ(values_of<float>(*context, model.loss(tape, output, truth).total.value)[0], 0);
    truth.counts = to_device(*context, {1}, std::vector<int32_t>{0});
    truth.boxes = to_device(*context, {1, 1, 4}, std::vector<float>{10, 20, 50, 40});
    const Loss loss = model.loss(tape, output, truth);
    EXPECT_EQ(values_of<float>(*context, loss.total.value)[0], 0);
    tape.backward(loss.total);
    for (const Var* x : {&output.deltas, &output.logits})
      for (const float gradient : values_of<float>(*context, tape.grad(*x))) ASSERT_EQ(gradient, 0);
  }
}

TEST(Ssd300, HasTheNamesAndShapesOfItsParts) {
  for (const auto& context : devices()) {
    ParameterStore store(*context);
    const Ssd300 model(store, {});
    store.allocate(1);
    for (const char* name : {"conv1.weight", "bn1.running_mean", "layer3.0.downsample.0.weight",
                             "additional_blocks.4.2.bias", "loc.5.weight", "conf.0.bias"})
      EXPECT_TRUE(store.find(name) || store.find_buffer(name)) << name;
    EXPECT_EQ(store.find("conf.0.bias")->value.count(), 4 * 81);
    EXPECT_EQ(store.find("loc.1.bias")->value.count(), 6 * 4);
    EXPECT_EQ(store.parameter_count(), 19972534);
    Tape tape(*context, Mode::eval);
    const Ssd300::Output output = model(tape, tape.constant(context->zeros({1, kSsdSide, kSsdSide, 3})));
    EXPECT_EQ(output.deltas.shape(), (Shape{1, kSsdBoxes, 4}));
    EXPECT_EQ(output.logits.shape(), (Shape{1, kSsdBoxes, 81}));
  }
}

TEST(Ssd300, RejectsInvalidOptions) {
  for (const auto& context : devices()) {
    ParameterStore store(*context);
    expect_error([&] { Ssd300(store, {.classes = 1}); }, Fault::config, "1 classes");
    expect_error([&] { Ssd300(store, {.blocks = {3, 4, 6, 3}}); }, Fault::config, "4 stages, expected 3");
    expect_error([&] { Ssd300(store, {.per_image = 0}); }, Fault::config, "0 per image");
    const Ssd300 model(store, {.classes = 2, .blocks = {1, 1, 1}});
    store.allocate(1);
    Tape tape(*context);
    const Var images = tape.constant(context->zeros({1, 300, 299, 3}));
    expect_error([&] { model(tape, images); }, Fault::config, "expected [n, 300, 300, c]");
    expect_error([&] { model.detect(tape, images); }, Fault::config, "expected Mode::eval");
  }
}

DetectionTruth two_objects(Context& context) {
  DetectionTruth truth;
  truth.counts = to_device(context, {1}, std::vector<int32_t>{2});
  truth.boxes = to_device(context, {1, 2, 4}, std::vector<float>{40, 40, 140, 140, 160, 150, 175, 240});
  truth.classes = to_device(context, {1, 2}, std::vector<int32_t>{1, 2});
  return truth;
}

// Losses and parameters after a few steps on head outputs as parameters.
struct TrainedHeads {
  std::vector<float> losses, parameters;
  bool operator==(const TrainedHeads&) const = default;
};

TrainedHeads train_heads(Context& context, bool cuda_graph) {
  ParameterStore unused(context), store(context);
  const Ssd300 model(unused, {.classes = 3, .blocks = {1, 1, 1}});
  store.add("deltas", {1, kSsdBoxes, 4}, Init::uniform(1));
  store.add("logits", {1, kSsdBoxes, 3}, Init::uniform(1));
  store.allocate(3);
  const DetectionTruth truth = two_objects(context);
  Optimizer optimizer(store, {});
  Trainer trainer(store, optimizer, Schedule{.base = 0.1}, {.seed = 9, .cuda_graph = cuda_graph});
  TrainedHeads trained;
  for (int step = 0; step < Trainer::kEagerSteps + 2; ++step) {
    const auto forward = [&](Tape& tape, int) {
      const Ssd300::Output output{tape.leaf(*store.find("deltas")), tape.leaf(*store.find("logits"))};
      return model.loss(tape, output, truth);
    };
    trained.losses.push_back(trainer.step(forward).loss);
  }
  trained.parameters = values_of<float>(context, store.values());
  return trained;
}

TEST(Ssd300, GraphStepsEqualEagerSteps) {
  for (const auto& context : devices()) {
    const TrainedHeads trained = train_heads(*context, true);
    EXPECT_TRUE(context->notices().empty()) << context->notices().front();
    EXPECT_LT(trained.losses.back(), trained.losses.front());
    EXPECT_EQ(trained, train_heads(*context, false));
  }
}

// Training steps of a whole network on noise.
std::vector<StepReport> train_network(Context& context, int steps, DType dtype) {
  ParameterStore store(context);
  const Ssd300 model(store, {.classes = 3, .blocks = {1, 1, 1}});
  store.allocate(3, {dtype, context.is_cpu() ? 3 : static_cast<int>(16 / size_of(dtype))});
  const Tensor image = to_device(context, random_array({1, kSsdSide, kSsdSide, 3}, 4));
  const DetectionTruth truth = two_objects(context);
  Optimizer optimizer(store, {});
  Trainer trainer(store, optimizer, Schedule{.base = 1e-3});
  std::vector<StepReport> reports;
  const auto forward = [&](Tape& tape, int) {
    const Tensor pixels = normalize_pixels(context, image, {.dtype = dtype, .channels = store.image_channels()});
    return model.loss(tape, tape.constant(pixels), truth);
  };
  for (int step = 0; step < steps; ++step) reports.push_back(trainer.step(forward));
  return reports;
}

TEST(Ssd300, LearnsInF32Bf16AndF16) {
  const std::vector<StepReport> expected = train_network(*make_cpu_context(), 3, DType::f32);
  EXPECT_LT(expected.back().loss, 0.9f * expected.front().loss);
  for (const auto& context : devices()) {
    for (const DType dtype : {DType::bf16, DType::f16}) {
      if (context->is_cpu() && dtype == DType::f16) continue;
      const StepReport first = train_network(*context, 1, dtype).front();
      EXPECT_NEAR(first.loss, expected.front().loss, 0.02f * expected.front().loss);
      EXPECT_NEAR(first.gradient_norm, expected.front().gradient_norm, 0.05 * expected.front().gradient_norm);
    }
  }
}

}  // namespace
}  // namespace dtrain::models
