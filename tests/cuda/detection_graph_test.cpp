// Ops of a two-stage detector in a CUDA graph give the results of eager execution.
#include "dtrain/layers.h"
#include "dtrain/ops/crop_masks.h"
#include "dtrain/ops/masked_losses.h"
#include "dtrain/ops/roi_align.h"
#include "dtrain/ops/scalar_loss.h"
#include "dtrain/ops/upsample.h"
#include "libdtrain/ops/blank_outside.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

// Small head over two maps, with all inputs on the device.
class DetectionStep {
 public:
  explicit DetectionStep(Context& context)
      : context_(context),
        store_(context),
        up_(store_, "up", 8, 8, 2, {.conv = {.stride = 2}}),
        map_(context.empty({2, 5, 5, 8})),
        rois_(context.empty({3, 4})),
        images_(integers({3}, {0, 1, -1})),
        which_(integers({3}, {0, 0, -1})),
        classes_(integers({3}, {3, 0, -1})),
        sizes_(to_device(context, Array({2, 2}, {5, 4, 3, 5}))),
        weights_(to_device(context, Array({3}, {1, 2, 0}))),
        runs_{integers({2, 2}, {20, 100, 50, 100}), integers({2, 2}, {0, 2, 0, 2}),
              to_device(context, Array({2, 2}, 10))},
        loss_(context.empty({1})) {
    store_.allocate(1);
  }

  void set_inputs(uint64_t seed) {
    context_.copy(to_device(context_, random_array({2, 5, 5, 8}, seed)), map_);
    Array rois = random_array({3, 4}, seed + 1, 0, 5);
    for (const int64_t high : {2, 3, 6, 7, 10, 11}) rois[high] += 5;
    context_.copy(to_device(context_, rois), rois_);
  }

  void run() {
    Tape tape(context_);
    blank_outside(context_, map_, sizes_);
    const Var map = tape.variable(map_);
    const std::vector<Var> maps{upsample_nearest(tape, map, 10, 10), map};
    const Tensor levels =
        roi_levels(context_, rois_, {.lowest = 0, .highest = 1, .canonical_size = 7, .canonical_level = 1});
    const RoiAlignOptions align{.height = 2, .width = 2, .scales = {1, 0.5f}};
    const Var pooled = roi_align(tape, maps, rois_, images_, levels, align);
    const Var chosen = select_class(tape, up_(tape, pooled), classes_);
    const Tensor targets = context_.empty({3, 4, 8});
    crop_masks(context_, runs_, rois_, images_, which_, {.height = 4, .width = 8}, targets);
    const LossDivisor divisor{32, weights_.slice(1, 2)};
    const Var loss = weighted_sum(tape,
                                  {sigmoid_cross_entropy(tape, chosen, targets, weights_, divisor),
                                   smooth_l1(tape, chosen, targets, weights_, 0.5f, divisor)},
                                  {1, 1});
    tape.backward(loss, &store_);
    context_.copy(loss.value, loss_);
  }

  // Loss and parameter gradients.
  std::vector<float> results() {
    std::vector<float> values = values_of<float>(context_, store_.grads());
    values.push_back(values_of<float>(context_, loss_)[0]);
    return values;
  }

 private:
  Tensor integers(const Shape& shape, const std::vector<int32_t>& values) { return to_device(context_, shape, values); }

  Context& context_;
  ParameterStore store_;
  ConvTranspose2d up_;
  Tensor map_, rois_, images_, which_, classes_, sizes_, weights_;
  RleMasks runs_;
  Tensor loss_;
};

TEST(DetectionGraph, ComputesWhatTheOpsCompute) {
  std::string reason;
  if (cuda_device_count(&reason) == 0) GTEST_SKIP() << "SKIPPED: no GPU: " << reason;
  const auto context = make_gpu_context();
  DetectionStep step(*context);
  std::vector<std::vector<float>> expected;
  for (const uint64_t seed : {1, 5, 9}) {
    step.set_inputs(seed);
    step.run();
    expected.push_back(step.results());
  }
  EXPECT_NE(expected[0], expected[1]);
  const auto graph = context->capture([&] { step.run(); });
  for (size_t i = 0; const uint64_t seed : {1, 5, 9}) {
    step.set_inputs(seed);
    context->launch(*graph);
    EXPECT_EQ(step.results(), expected[i++]);
  }
}

}  // namespace
}  // namespace dtrain
