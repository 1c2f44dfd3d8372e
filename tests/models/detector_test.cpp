// A small detector: decreasing loss, bit-identical steps in all execution modes, presets.
#include "dtrain/models/detection/detector.h"

#include <cmath>

#include "dtrain/models/detection/presets.h"
#include "tests/models/drawn_scene.h"

namespace dtrain::models {
namespace {

TEST(Detector, LearnsAScene) {
  for (const auto& context : devices()) {
    const DrawnScene scene(*context);
    const Trained trained = train_detector(*context, 12, true, tiny_detector(), {&scene});
    EXPECT_TRUE(std::isfinite(trained.losses.back()));
    EXPECT_LT(trained.losses.back(), 0.8 * trained.losses.front());
  }
}

TEST(Detector, RunsAreBitIdentical) {
  for (const auto& context : devices()) {
    const DrawnScene scene(*context);
    const auto train = [&] { return train_detector(*context, 3, true, tiny_detector(), {&scene}); };
    EXPECT_EQ(train(), train());
  }
}

TEST(Detector, GraphStepsEqualEagerSteps) {
  for (const auto& context : devices()) {
    if (context->is_cpu()) continue;
    const DrawnScene scene(*context);
    const Trained recorded = train_detector(*context, 6, true, tiny_detector(), {&scene});
    EXPECT_TRUE(context->notices().empty()) << context->notices().front();
    EXPECT_EQ(recorded, train_detector(*context, 6, false, tiny_detector(), {&scene}));
  }
}

TEST(Detector, LearnsInBf16AndF16) {
  for (const auto& context : devices()) {
    const DrawnScene scene(*context);
    const double first = train_detector(*context, 1, false, tiny_detector(), {&scene}).losses.front();
    for (const DType dtype : {DType::bf16, DType::f16}) {
      if (context->is_cpu() && dtype == DType::f16) continue;
      const Trained trained = train_detector(*context, 5, true, tiny_detector(), {&scene}, dtype);
      const bool emulates = context->is_cpu() && context->isa() < CpuIsa::avx512_bf16;
      EXPECT_EQ(context->notices().size(), emulates ? 1 : 0) << context->notices().front();
      context->notices().clear();
      EXPECT_NEAR(trained.losses.front(), first, 0.05 * first);
      EXPECT_LT(trained.losses.back(), 0.95 * trained.losses.front());
    }
  }
}

TEST(Detector, MicroStepsEqualOneBatch) {
  for (const auto& context : devices())
    expect_micro_steps_to_stand_for_a_batch(*context, tiny_detector(/*per_image_means=*/true));
}

TEST(Detector, NoProposalsNoDetections) {
  for (const auto& context : devices()) {
    DetectorOptions options = tiny_detector();
    options.detection.score_threshold = 2;
    ParameterStore store(*context);
    const Detector detector(store, options);
    store.allocate(3);
    const DrawnScene scene(*context);
    Tape tape(*context, Mode::eval);
    const Detections found = detector.detect(tape, detector.canvas(*context, kSceneSide, kSceneSide),
                                             tape.constant(scene.images), scene.truth.sizes);
    EXPECT_EQ(values_of<int32_t>(*context, found.counts), (std::vector<int32_t>{0, 0}));
    EXPECT_FALSE(found.masks);
  }
}

TEST(Detector, EmptyImagesGiveFiniteLosses) {
  for (const auto& context : devices()) {
    DrawnScene scene(*context);
    context->fill_zero(scene.truth.counts);
    const Trained trained = train_detector(*context, 2, false, tiny_detector(), {&scene});
    for (const double loss : trained.losses) EXPECT_TRUE(std::isfinite(loss)) << loss;
    for (const float parameter : trained.parameters) ASSERT_TRUE(std::isfinite(parameter));
  }
}

TEST(Detector, RejectsInvalidOptions) {
  const auto context = make_cpu_context();
  const auto build = [&](const DetectorOptions& options) {
    ParameterStore store(*context);
    const Detector detector(store, options);
  };
  DetectorOptions options = tiny_detector();
  options.classes = 1;
  expect_error([&] { build(options); }, Fault::config, "1 classes");
  options = tiny_detector();
  options.backbone.blocks = {1, 1};
  expect_error([&] { build(options); }, Fault::config, "2 stages");
  expect_error([] { detector_preset("tensorpak"); }, Fault::config, "expected one of torchvision, tensorpack");
}

TEST(Detector, HasTorchvisionParameters) {
  const auto context = make_cpu_context();
  ParameterStore store(*context);
  const Detector detector(store, detector_preset("torchvision").options);
  // As counted by torchvision, except for frozen batch norms, which are buffers there.
  int64_t trainable = 0;
  for (const Parameter& parameter : store.parameters())
    if (parameter.name.find(".bn") == std::string::npos && parameter.name.find("downsample.1") == std::string::npos)
      trainable += parameter.shape.count();
  EXPECT_EQ(trainable, 44'401'393);
}

}  // namespace
}  // namespace dtrain::models
