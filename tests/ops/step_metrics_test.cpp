// Ring buffer of step metrics: written row, stored values, accumulation over micro-steps.
#include "libdtrain/ops/step_metrics.h"

#include "tests/testing.h"

namespace dtrain {
namespace {

constexpr int64_t kRows = 4, kColumns = 3 + kStepColumns;

std::vector<float> row_of(Context& context, const Tensor& ring, int64_t row) {
  return values_of<float>(context, ring.slice(row, row + 1));
}

TEST(StepMetrics, FirstMicroStepStoresLaterOnesAdd) {
  for (const auto& context : devices()) {
    const Tensor ring = to_device(*context, Array({kRows, kColumns}, 7));
    const Tensor row = to_device(*context, Array({kColumns}, 9));
    context->set_scalars({.step = 4 * kRows + 2, .request = 1});
    context->set_step_state({.loss_scale = 64, .skipped = 5});
    // More rows than threads per block, and not a multiple of a warp.
    Array hits_1({301}), hits_5({301});
    for (int64_t i = 0; i < 301; ++i) hits_1[i] = i % 5 == 0, hits_5[i] = i % 2 == 0;
    const Tensor top_1 = to_device(*context, hits_1), top_5 = to_device(*context, hits_5);
    const Tensor losses[] = {to_device(*context, Array({1}, 1.5)), to_device(*context, Array({1}, 0.25))};
    add_step_sums(*context, std::vector{losses[0], top_1, top_5}, false, row);
    add_step_sums(*context, std::vector{losses[1], top_1, top_5}, true, row);
    finish_step_row(*context, to_device(*context, Array({1}, 3)), row, ring);
    EXPECT_EQ(row_of(*context, ring, 2), (std::vector<float>{1.75, 122, 302, 1, 19, 1, 3, 64, 5}));
    for (const int64_t other : {0, 1, 3})
      EXPECT_EQ(row_of(*context, ring, other), std::vector<float>(kColumns, 7)) << "row " << other;
  }
}

TEST(StepMetrics, ReportsAGradientThatIsNotFinite) {
  for (const auto& context : devices()) {
    const Tensor ring = context->zeros({kRows, kColumns});
    context->set_scalars({.step = 1});
    context->set_step_state({.finite = 0});
    finish_step_row(*context, to_device(*context, Array({1}, 2)), context->zeros({kColumns}), ring);
    EXPECT_EQ(row_of(*context, ring, 1), (std::vector<float>{0, 0, 0, 0, 0, 0, 2, 1, 0}));
  }
}

TEST(StepMetrics, RefusesWhatDoesNotFit) {
  for (const auto& context : devices()) {
    const Tensor one = context->zeros({1}), ring = context->zeros({kRows, kColumns}), row = context->zeros({kColumns});
    const auto add = [&](std::vector<Tensor> sums, const Tensor& to) { add_step_sums(*context, sums, false, to); };
    expect_error([&] { add({one, one}, row); }, Fault::config, "expected a row [8]");
    expect_error([&] { add({one, one, one}, ring); }, Fault::config, "expected a row [9]");
    expect_error([&] { add({one, one, Tensor()}, row); }, Fault::config, "type f32");
    expect_error([&] { add(std::vector<Tensor>(33, one), row); }, Fault::config, "33 sums");
    expect_error([&] { finish_step_row(*context, one, row, ring.view({kRows * kColumns})); }, Fault::config,
                 "[rows, columns]");
  }
}

}  // namespace
}  // namespace dtrain
