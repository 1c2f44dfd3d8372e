// Detector variants: cascade of box heads, single map (C4), other norms. Each learns, gives bit-identical steps in all
// execution modes, and has correct gradients.
#include "dtrain/models/detection/detector.h"

#include <cmath>
#include <optional>

#include "models/detection/cascade.h"
#include "tests/models/drawn_scene.h"

namespace dtrain::models {
namespace {

DetectorOptions tiny_cascade() {
  DetectorOptions options = tiny_detector(/*per_image_means=*/true);
  options.cascade = true;
  return options;
}

DetectorOptions tiny_c4() {
  DetectorOptions options = tiny_detector(/*per_image_means=*/true);
  options.pyramid = false;
  options.rpn.sizes = {8, 16, 32};
  options.c4 = {.rpn_channels = 16, .training = {100, 40}, .evaluation = {100, 30}, .resolution = 4};
  return options;
}

DetectorOptions tiny_with_norm(ConvNorm norm) {
  DetectorOptions options = tiny_detector(/*per_image_means=*/true);
  options.freeze_at = 0;
  options.freeze_norms = false;
  options.backbone.norm = norm;
  options.backbone.zero_last_gamma = true;
  if (norm == ConvNorm::none) return options;
  options.backbone.width = kNormGroups;
  options.channels = options.box.channels = options.mask.channels = 32;
  options.pyramid_norm = options.box.group_norm = options.mask.group_norm = true;
  options.box.norm_after_relu = true;
  options.box.convolutions = options.box.linear_layers = 1;
  return options;
}

struct Variant {
  const char* name;
  DetectorOptions options;
};

std::ostream& operator<<(std::ostream& out, const Variant& variant) { return out << variant.name; }

class DetectorVariant : public testing::TestWithParam<Variant> {};

INSTANTIATE_TEST_SUITE_P(All, DetectorVariant,
                         testing::Values(Variant{"cascade", tiny_cascade()}, Variant{"c4", tiny_c4()},
                                         Variant{"group norm", tiny_with_norm(ConvNorm::group)},
                                         Variant{"no norm", tiny_with_norm(ConvNorm::none)}));

TEST_P(DetectorVariant, LearnsAScene) {
  if (sanitized()) GTEST_SKIP() << "SKIPPED: twelve steps, of which the other tests take three with sanitizers";
  const auto context = make_cpu_context();
  const DrawnScene scene(*context);
  const Trained trained = train_detector(*context, 12, true, GetParam().options, {&scene});
  EXPECT_TRUE(std::isfinite(trained.losses.back()));
  EXPECT_LT(trained.losses.back(), 0.85 * trained.losses.front());
}

TEST_P(DetectorVariant, GraphStepsEqualEagerSteps) {
  for (const auto& context : devices()) {
    if (context->is_cpu()) continue;
    const DrawnScene scene(*context);
    const Trained recorded = train_detector(*context, 3, true, GetParam().options, {&scene});
    EXPECT_TRUE(context->notices().empty()) << context->notices().front();
    EXPECT_EQ(recorded, train_detector(*context, 3, false, GetParam().options, {&scene}));
  }
}

TEST_P(DetectorVariant, MicroStepsEqualOneBatch) {
  const auto context = make_cpu_context();
  expect_micro_steps_to_stand_for_a_batch(*context, GetParam().options);
}

TEST_P(DetectorVariant, DetectsBoxesAndMasks) {
  for (const auto& context : devices()) {
    ParameterStore store(*context);
    DetectorOptions options = GetParam().options;
    options.detection.score_threshold = 0;
    const Detector detector(store, options);
    store.allocate(3);
    const DrawnScene scene(*context);
    Tape tape(*context, Mode::eval);
    const Detections found = detector.detect(tape, detector.canvas(*context, kSceneSide, kSceneSide),
                                             tape.constant(scene.images), scene.truth.sizes);
    EXPECT_EQ(values_of<int32_t>(*context, found.counts), (std::vector<int32_t>{10, 10}));
    const int64_t side = 2 * detector.options().mask.resolution;
    EXPECT_EQ(found.masks.shape(), (Shape{20, side, side}));
    for (const float score : values_of<float>(*context, found.scores)) EXPECT_TRUE(score > 0 && score < 1) << score;
    for (const int32_t one : values_of<int32_t>(*context, found.classes)) EXPECT_TRUE(one >= 1 && one <= 3) << one;
  }
}

// Losses of a detector as a function of its parameters.
struct LossOf {
  LossOf(Context& context, const DetectorOptions& options) : store(context), detector(store, options), scene(context) {
    store.allocate(3);
    context.set_scalars({.step = 2, .seed = 9});
  }
  Tape& run(bool backward) {
    tape.emplace(store.context());
    const Canvas canvas = detector.canvas(store.context(), kSceneSide, kSceneSide);
    loss.emplace(detector.loss(*tape, canvas, tape->constant(scene.images), scene.truth));
    if (backward) tape->backward(loss->total, &store);
    return *tape;
  }
  double total() {
    run(false);
    return to_host(store.context(), loss->total.value)[0];
  }

  ParameterStore store;
  Detector detector;
  DrawnScene scene;
  std::optional<Tape> tape{};
  std::optional<Loss> loss{};
};

// Compares with finite differences along the gradient, for parameters that affect neither proposals nor later regions.
void expect_gradient(Context& context, DetectorOptions options, const std::vector<std::string>& names) {
  options.backbone.width = 64;  // in a narrow network a step crosses ReLU kinks, which distort finite differences
  LossOf f(context, options);
  f.run(true);
  for (const std::string& name : names) {
    Parameter* const parameter = f.store.find(name);
    ASSERT_NE(parameter, nullptr) << name;
    const Array value = to_host(context, parameter->value), gradient = to_host(context, parameter->grad);
    double square = 0;
    for (const double g : gradient.values) square += g * g;
    ASSERT_GT(square, 0) << name;
    const double step = 0.003 / std::sqrt(square);
    const auto at = [&](double t) {
      Array moved = value;
      for (int64_t i = 0; i < moved.count(); ++i) moved[i] += t * gradient[i];
      std::vector<float> numbers(moved.values.begin(), moved.values.end());
      context.upload(numbers.data(), parameter->value);
      f.store.refresh_compute();
      return f.total();
    };
    const double difference = (at(step) - at(-step)) / (2 * step);
    at(0);
    EXPECT_NEAR(difference, square, 0.02 * square) << name;
  }
}

TEST(DetectorVariants, GradientsMatchFiniteDifferences) {
  const auto context = make_cpu_context();
  expect_gradient(*context, tiny_cascade(),
                  {"roi_heads.stage1.box_predictor.cls_score.weight", "roi_heads.stage2.box_predictor.cls_score.weight",
                   "roi_heads.stage3.box_head.fc6.weight", "roi_heads.stage3.box_predictor.bbox_pred.weight"});
  DetectorOptions c4 = tiny_c4();
  expect_gradient(*context, c4, {"roi_heads.mask_predictor.conv5_mask.weight"});
  c4.masks = false;  // isolates the gradient of the boxes
  expect_gradient(*context, c4,
                  {"backbone.body.layer4.0.conv1.weight", "backbone.body.layer4.0.downsample.0.weight",
                   "roi_heads.box_predictor.bbox_pred.weight"});
  expect_gradient(*context, tiny_with_norm(ConvNorm::group),
                  {"roi_heads.box_head.0.0.weight", "roi_heads.box_head.0.1.weight", "roi_heads.mask_head.0.1.bias"});
}

// Heads with a zero first layer send no gradient to their features; their losses reach the pyramid through proposals
// only.
TEST(DetectorVariants, CascadeScalesRegionGradients) {
  const auto context = make_cpu_context();
  const auto gradient = [&](size_t heads, size_t alive) {
    DetectorOptions options = tiny_cascade();
    options.masks = false;
    options.stages.resize(heads);
    LossOf f(*context, options);
    for (size_t i = alive; i < heads; ++i)
      context->fill_zero(f.store.find(concat("roi_heads.stage", i + 1, ".box_head.fc6.weight"))->value);
    f.store.refresh_compute();
    f.run(true);
    return to_host(*context, f.store.find("backbone.fpn.layer_blocks.0.0.weight")->grad);
  };
  const Array proposals = gradient(1, 0), whole = gradient(1, 1), third = gradient(3, 1);
  Array expected = proposals;
  for (int64_t i = 0; i < expected.count(); ++i) expected[i] += (whole[i] - proposals[i]) / 3;
  expect_close(third, expected, 1e-5, "gradient of the pyramid");
}

TEST(DetectorVariants, RefinedRegionsAreRematched) {
  for (const auto& context : devices()) {
    DetectionTruth truth;
    truth.sizes = to_device<float>(*context, {2, 2}, {100, 80, 50, 60});
    truth.counts = to_device<int32_t>(*context, {2}, {2, 0});
    truth.boxes = to_device<float>(*context, {2, 2, 4}, {10, 10, 30, 30, 40, 40, 80, 60, 0, 0, 0, 0, 0, 0, 0, 0});
    truth.classes = to_device<int32_t>(*context, {2, 2}, {3, 5, 0, 0});
    // First image: no overlap, zero area, IoU 0.6 with the second object, IoU 1 with the first, padding.
    const Tensor boxes = to_device<float>(*context, {10, 4},
                                          {0,  0,  5,  5,  80, 20, 80, 50, 40, 40, 64, 60, 10, 10, 30, 30, 0, 0, 0, 0,
                                           10, 10, 20, 20, 0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0, 0, 0, 0});
    const auto classes = [&](float iou) {
      const RoiSamples regions = refined_regions(*context, boxes, truth, iou, {.wx = 10, .ww = 5});
      return values_of<int32_t>(*context, regions.classes);
    };
    EXPECT_EQ(classes(0.55f), (std::vector<int32_t>{5, 3, 0, -1, -1, 0, -1, -1, -1, -1}));
    EXPECT_EQ(classes(0.7f), (std::vector<int32_t>{3, 0, 0, -1, -1, 0, -1, -1, -1, -1}));

    const RoiSamples regions = refined_regions(*context, boxes, truth, 0.55f, {.wx = 10, .ww = 5});
    EXPECT_EQ(values_of<float>(*context, regions.totals), (std::vector<float>{4, 2}));
    EXPECT_EQ(values_of<int32_t>(*context, regions.truth),
              (std::vector<int32_t>{1, 0, -1, -1, -1, -1, -1, -1, -1, -1}));
    const std::vector<float> deltas = values_of<float>(*context, regions.deltas);
    EXPECT_NEAR(deltas[0], 10 * 8.0 / 24, 1e-5);
    EXPECT_NEAR(deltas[2], 5 * std::log(40.0 / 24), 1e-5);
  }
}

TEST(DetectorVariants, RefinedBoxesAreDecodedAndClipped) {
  for (const auto& context : devices()) {
    const Tensor rois = to_device<float>(*context, {2, 4}, {10, 10, 30, 50, 0, 0, 0, 0});
    const Tensor deltas = to_device<float>(*context, {2, 4}, {5, -10, 0, 5, 3, 2, 1, 4});
    const Tensor sizes = to_device<float>(*context, {1, 2}, {60, 38});
    const Tensor boxes = refined_boxes(*context, deltas, rois, sizes, {.wx = 10, .wy = 20, .ww = 5, .wh = 5});
    // Moves the centre from (20, 30) to (30, 10), scales the height from 40 to 40 e.
    const std::vector<float> found = values_of<float>(*context, boxes);
    EXPECT_NEAR(found[0], 20, 1e-5);
    EXPECT_EQ(found[1], 0);
    EXPECT_EQ(found[2], 38);
    EXPECT_EQ(found[3], 60);
    EXPECT_EQ((std::vector<float>(found.begin() + 4, found.end())), (std::vector<float>(4, 0)));
  }
}

TEST(DetectorVariants, RejectInvalidOptions) {
  const auto context = make_cpu_context();
  const auto build = [&](const DetectorOptions& options) {
    ParameterStore store(*context);
    const Detector detector(store, options);
  };
  DetectorOptions options = tiny_c4();
  options.cascade = true;
  expect_error([&] { build(options); }, Fault::config, "without a pyramid");
  options = tiny_c4();
  options.c4.resolution = 7;
  expect_error([&] { build(options); }, Fault::config, "expected an even number");
  options = tiny_c4();
  options.backbone.batch_norm.frozen = false;
  expect_error([&] { build(options); }, Fault::config, "constant statistics");
  options = tiny_cascade();
  options.stages.clear();
  expect_error([&] { build(options); }, Fault::config, "a cascade of 0 heads");
}

}  // namespace
}  // namespace dtrain::models
