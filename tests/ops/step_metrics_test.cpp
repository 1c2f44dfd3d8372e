// The ring of step metrics: which row a step writes, what it stores and what later micro-steps add.
#include "libdtrain/ops/step_metrics.h"

#include "tests/testing.h"

namespace dtrain {
namespace {

constexpr int64_t kRows = 4;

std::vector<float> row_of(Context& context, const Tensor& ring, int64_t row) {
  return values_of<float>(context, ring.slice(row, row + 1));
}

TEST(StepMetrics, FirstMicroStepStoresLaterOnesAdd) {
  for (const auto& context : devices()) {
    const Tensor ring = to_device(*context, Array({kRows, kStepMetrics}, 7));
    const Tensor metrics = to_device(*context, Array({kStepMetrics}, 9));
    context->set_scalars({.step = 4 * kRows + 2, .request = 1});
    context->set_step_state({.loss_scale = 64, .skipped = 5});
    // More rows than a block has threads, and not a multiple of a warp.
    Array hits_1({301}), hits_5({301});
    for (int64_t i = 0; i < 301; ++i) hits_1[i] = i % 5 == 0, hits_5[i] = i % 2 == 0;
    const Tensor top_1 = to_device(*context, hits_1), top_5 = to_device(*context, hits_5);
    add_step_metrics(*context, to_device(*context, Array({1}, 1.5)), top_1, top_5, false, metrics);
    add_step_metrics(*context, to_device(*context, Array({1}, 0.25)), top_1, top_5, true, metrics);
    finish_step_metrics(*context, to_device(*context, Array({1}, 3)), metrics, ring);
    EXPECT_EQ(row_of(*context, ring, 2), (std::vector<float>{1.75, 122, 302, 602, 1, 19, 1, 3, 64, 5}));
    for (const int64_t other : {0, 1, 3})
      EXPECT_EQ(row_of(*context, ring, other), std::vector<float>(kStepMetrics, 7)) << "row " << other;
  }
}

TEST(StepMetrics, TellsOfAGradientThatIsNotFinite) {
  for (const auto& context : devices()) {
    const Tensor ring = context->zeros({kRows, kStepMetrics});
    context->set_scalars({.step = 1});
    context->set_step_state({.finite = 0});
    finish_step_metrics(*context, to_device(*context, Array({1}, 2)), context->zeros({kStepMetrics}), ring);
    EXPECT_EQ(row_of(*context, ring, 1), (std::vector<float>{0, 0, 0, 0, 0, 0, 0, 2, 1, 0}));
  }
}

TEST(StepMetrics, RefusesWhatDoesNotFit) {
  for (const auto& context : devices()) {
    const Tensor one = context->zeros({1}), hits = context->zeros({3}), ring = context->zeros({kRows, kStepMetrics});
    const Tensor metrics = context->zeros({kStepMetrics});
    expect_error([&] { add_step_metrics(*context, one, hits, one, false, metrics); }, Fault::config, "[3] and [1]");
    expect_error([&] { add_step_metrics(*context, one, hits, hits, false, ring); }, Fault::config, "expected [10]");
    expect_error([&] { finish_step_metrics(*context, one, metrics, ring.view({kRows * kStepMetrics})); }, Fault::config,
                 "[rows, 10]");
  }
}

}  // namespace
}  // namespace dtrain
