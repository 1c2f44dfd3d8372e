// Dynamic loss scale against an independent implementation of its rules.
#include <cmath>
#include <limits>

#include "dtrain/ops/update.h"
#include "libdtrain/ops/update_math.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

constexpr int64_t kCount = 5000;

struct Model {
  StepState state;

  void step(bool good) {
    if (good) {
      if (++state.good_steps < state.double_after) return;
      state.loss_scale *= 2;
    } else {
      state.loss_scale /= 2;
      ++state.skipped;
    }
    state.good_steps = 0;
  }
};

struct Updates {
  Updates(Context& c, const UpdateOptions& o, const StepState& state)
      : context(c), options(o), plan(c, {{0, kCount, 0.1f}}), values(to_device(c, random_array({kCount}, 1))) {
    context.set_step_state(state);
    for (int i = 0; i < state_arenas(o.rule); ++i) states.push_back(c.zeros({kCount}));
  }
  // Gradient of a backward pass under this loss scale, with one non-finite element unless `good`.
  void step(uint64_t step, uint64_t seed, float loss_scale, bool good, int64_t bad = 0) {
    Array grads = random_array({kCount}, seed);
    for (double& g : grads.values) g *= static_cast<double>(loss_scale);
    if (!good) grads[bad] = seed % 2 ? std::numeric_limits<double>::infinity() : NAN;
    context.set_scalars({.learning_rate = 0.01f, .gradient_scale = 0.5f, .step = step});
    update(context, options, plan, {values, to_device(context, grads), states}, norms);
  }
  StepState state() const { return context.get_scalars(); }

  Context& context;
  UpdateOptions options;
  UpdatePlan plan;
  Tensor values, norms = context.zeros({1});
  std::vector<Tensor> states;
};

// A skipped step only lowers the scale: the same gradients without the bad ones give the same values, including Adam's
// step count.
TEST(LossScale, MovesAsSpecifiedAndSkipsWithoutATrace) {
  const std::string outcomes = "ggbgggggbbggggggbgggg";
  for (const auto& context : devices())
    for (const UpdateRule rule : {UpdateRule::momentum, UpdateRule::adamw, UpdateRule::lamb}) {
      Model model{{.loss_scale = 128, .double_after = 3}};
      Updates run(*context, {.rule = rule}, model.state);
      std::vector<uint64_t> applied;
      for (uint64_t i = 0; i < outcomes.size(); ++i) {
        const bool good = outcomes[i] == 'g';
        if (good) applied.push_back(i);
        run.step(i, i, model.state.loss_scale, good, i % 3 ? kCount - 1 : 0);
        model.step(good);
        EXPECT_EQ(run.state(), model.state) << "after step " << i;
      }
      EXPECT_EQ(model.state.skipped, 4u);
      const auto values = to_host(*context, run.values).values;

      Updates plain(*context, {.rule = rule}, {});
      for (uint64_t i = 0; i < applied.size(); ++i) plain.step(i, applied[i], 1, true);
      EXPECT_EQ(to_host(*context, plain.values).values, values) << static_cast<int>(rule);
    }
}

TEST(LossScale, ContinuesFromItsStateBitExactly) {
  for (const auto& context : devices()) {
    Updates whole(*context, {}, {.loss_scale = 4, .double_after = 4});
    const auto step = [](Updates& run, uint64_t i) { run.step(i, i, run.state().loss_scale, i != 3); };
    for (uint64_t i = 0; i < 6; ++i) step(whole, i);
    const StepState saved = whole.state();
    const Array values = to_host(*context, whole.values), state = to_host(*context, whole.states[0]);
    for (uint64_t i = 6; i < 12; ++i) step(whole, i);
    const StepState end = whole.state();

    Updates resumed(*context, {}, saved);
    resumed.values = to_device(*context, values);
    resumed.states = {to_device(*context, state)};
    for (uint64_t i = 6; i < 12; ++i) step(resumed, i);
    EXPECT_EQ(resumed.state(), end);
    EXPECT_EQ(to_host(*context, resumed.values).values, to_host(*context, whole.values).values);
  }
}

// A NaN loss must not halve the scale forever.
TEST(LossScale, StopsWhereHalvingDoesNotHelp) {
  for (const auto& context : devices()) {
    Updates run(*context, {}, {.loss_scale = 4 * kSmallestLossScale, .double_after = 100});
    const Array initial = to_host(*context, run.values);
    for (uint64_t i = 0; i < 2; ++i) run.step(i, i, 1, false);
    EXPECT_EQ(run.state(), (StepState{.loss_scale = kSmallestLossScale, .double_after = 100, .skipped = 2}));
    run.step(2, 2, 1, false);
    run.step(3, 3, 1, true);
    EXPECT_EQ(run.state(),
              (StepState{.loss_scale = kSmallestLossScale, .double_after = 100, .finite = 0, .skipped = 2}));
    EXPECT_EQ(to_host(*context, run.values).values, initial.values);
  }
}

TEST(LossScale, DoublesToItsLimitOnly) {
  for (const auto& context : devices()) {
    Updates run(*context, {}, {.loss_scale = kLargestLossScale / 2, .double_after = 1});
    for (uint64_t i = 0; i < 3; ++i) run.step(i, i, run.state().loss_scale, true);
    EXPECT_EQ(run.state(), (StepState{.loss_scale = kLargestLossScale, .double_after = 1}));
  }
}

TEST(LossScale, IsTakenOutOfTheNorm) {
  for (const auto& context : devices()) {
    Updates run(*context, {.clip_norm = 1}, {.loss_scale = 64});
    run.step(0, 5, 64, true);
    double squares = 0;
    for (const double g : random_array({kCount}, 5).values) squares += g * g;
    EXPECT_NEAR(to_host(*context, run.norms)[0], 0.5 * std::sqrt(squares), 1e-5);
  }
}

}  // namespace
}  // namespace dtrain
