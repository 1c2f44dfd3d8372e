// Training step: accumulation, non-finite gradients, reports.
#include "dtrain/train/trainer.h"

#include <cmath>
#include <limits>

#include "dtrain/layers.h"
#include "dtrain/ops/pointwise.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

constexpr int64_t kRows = 8, kInputs = 6, kClasses = 7;

// Two linear layers, and one that does not affect the loss.
struct Net {
  explicit Net(Context& c,
               const OptimizerOptions& options = {.update = {.rule = UpdateRule::momentum}, .weight_decay = 0.01f})
      : store(c),
        hidden(store, "hidden", kInputs, 5, Init::normal(0.5f)),
        out(store, "out", 5, kClasses, Init::normal(0.5f)),
        unused(store, "unused", 2, 2, Init::normal(1)),
        optimizer((store.allocate(11), store), options) {}

  Classification loss(Tape& tape, const Tensor& x, const Tensor& labels) const {
    const Var y = out(tape, relu(tape, hidden(tape, tape.constant(x))));
    return softmax_cross_entropy(tape, y, labels);
  }

  ParameterStore store;
  Linear hidden, out, unused;
  Optimizer optimizer;
};

struct TrainerTest : testing::Test {
  Schedule schedule(double rate) const {
    Schedule result;
    result.base = rate;
    return result;
  }
  Trainer::Forward on_rows(const Net& net, int64_t rows) const {
    return [this, &net, rows](Tape& tape, int micro_step) {
      const int64_t begin = micro_step * rows;
      return net.loss(tape, x.slice(begin, begin + rows), labels.slice(begin, begin + rows));
    };
  }

  std::unique_ptr<Context> context = make_cpu_context();
  Tensor x = to_device(*context, random_array({kRows, kInputs}, 5));
  Tensor labels = to_device<int32_t>(*context, {kRows}, {0, 1, 2, 3, 4, 5, 6, 3});
};

TEST_F(TrainerTest, TwoMicroStepsOfFourAreOneOfEight) {
  Net whole(*context), parts(*context);
  Trainer one(whole.store, whole.optimizer, schedule(0.5));
  Trainer two(parts.store, parts.optimizer, schedule(0.5), {.micro_steps = 2});
  for (int step = 0; step < 3; ++step) {
    const StepReport a = one.step(on_rows(whole, 8)), b = two.step(on_rows(parts, 4));
    EXPECT_NEAR(a.loss, b.loss, 1e-6);
    EXPECT_NEAR(a.gradient_norm, b.gradient_norm, 1e-6);
    EXPECT_EQ(a.metrics, b.metrics);
    EXPECT_GT(a.metric("top_5_accuracy"), 0);
  }
  expect_close(to_host(*context, parts.store.values()), to_host(*context, whole.store.values()), 1e-6, "values");
}

TEST_F(TrainerTest, LossScaleChangesNothing) {
  const auto other_context = make_cpu_context();  // a context holds one loss scale
  Net plain(*context), scaled(*other_context);
  Trainer one(plain.store, plain.optimizer, schedule(0.5));
  Trainer other(scaled.store, scaled.optimizer, schedule(0.5), {.loss_scale = 1024});
  const StepReport a = one.step(on_rows(plain, 8)), b = other.step(on_rows(scaled, 8));
  EXPECT_EQ(a.loss, b.loss);
  EXPECT_EQ(a.gradient_norm, b.gradient_norm);
  EXPECT_EQ(to_host(*context, plain.store.values()).values, to_host(*context, scaled.store.values()).values);
}

TEST_F(TrainerTest, DynamicLossScaleSkipsWhatIsNotFiniteAndGoesOn) {
  Net net(*context);
  const TrainerOptions options{.loss_scale = 16, .double_loss_scale_after = 2};
  Trainer trainer(net.store, net.optimizer, schedule(0.1), options);
  const float good = x.data<float>()[3];
  const auto step = [&](Trainer& of, const Net& with, bool finite) {
    x.data<float>()[3] = finite ? good : std::numeric_limits<float>::infinity();
    const StepReport report = of.step(on_rows(with, 8));
    EXPECT_TRUE(report.finite);
    return std::pair(report.loss_scale, report.skipped);
  };
  using Told = std::pair<float, uint64_t>;
  EXPECT_EQ(step(trainer, net, true), Told(16, 0));
  const auto values = to_host(*context, net.store.values()).values;
  EXPECT_EQ(step(trainer, net, false), Told(8, 1));
  EXPECT_EQ(to_host(*context, net.store.values()).values, values);
  EXPECT_EQ(step(trainer, net, true), Told(8, 1));

  // A run that continues from here.
  const auto other_context = make_cpu_context();
  Net other(*other_context);
  Trainer resumed(other.store, other.optimizer, schedule(0.1), options);
  resumed.resume(trainer.steps_done(), trainer.step_state());
  other_context->copy(net.store.values(), other.store.values());
  other_context->copy(net.store.optimizer_state(0), other.store.optimizer_state(0));
  for (const Told& expected : {Told(16, 1), Told(16, 1), Told(32, 1)}) {
    EXPECT_EQ(step(trainer, net, true), expected);
    EXPECT_EQ(step(resumed, other, true), expected);
  }
  EXPECT_EQ(to_host(*context, net.store.values()).values, to_host(*other_context, other.store.values()).values);
  EXPECT_EQ(resumed.step_state(), trainer.step_state());
}

TEST_F(TrainerTest, ResumesTheScaleOfItsOwnOptions) {
  Net net(*context);
  const StepState saved{.loss_scale = 512, .double_after = 100, .good_steps = 7, .skipped = 3};
  const auto state_of = [&](const TrainerOptions& options, const StepState& from) {
    Trainer trainer(net.store, net.optimizer, schedule(0.1), options);
    trainer.resume(50, from);
    return trainer.step_state();
  };
  EXPECT_EQ(state_of({.loss_scale = 16, .double_loss_scale_after = 200}, saved),
            (StepState{.loss_scale = 512, .double_after = 200, .good_steps = 7, .skipped = 3}));
  // A static scale follows the option, as does the first dynamic one of a run without a saved one.
  EXPECT_EQ(state_of({.loss_scale = 16}, saved), (StepState{.loss_scale = 16, .skipped = 3}));
  EXPECT_EQ(state_of({.loss_scale = 16, .double_loss_scale_after = 200}, {}),
            (StepState{.loss_scale = 16, .double_after = 200}));
}

TEST_F(TrainerTest, ReportsTheStep) {
  Net net(*context);
  Trainer trainer(net.store, net.optimizer, Schedule::parse_piecewise("0.5;2;0.25", 1));
  EXPECT_EQ(trainer.step(on_rows(net, 8)).learning_rate, 0.5f);
  trainer.resume(2);  // as a resumed run does
  const StepReport report = trainer.step(on_rows(net, 8));
  EXPECT_EQ(report.step, 3u);
  EXPECT_EQ(report.learning_rate, 0.25f);
  EXPECT_TRUE(report.finite);
  EXPECT_EQ(trainer.unwritten_parameters(), (std::vector<std::string>{"unused.weight", "unused.bias"}));
}

TEST_F(TrainerTest, LaterMicroStepsCanWriteWhatTheFirstDidNot) {
  Net net(*context);
  Trainer trainer(net.store, net.optimizer, schedule(0.5), {.micro_steps = 2});
  const Tensor two = to_device(*context, random_array({4, 2}, 6));
  trainer.step([&](Tape& tape, int micro_step) -> Loss {
    if (micro_step == 0) return on_rows(net, 4)(tape, 0);
    return softmax_cross_entropy(tape, net.unused(tape, tape.constant(two)),
                                 to_device<int32_t>(*context, {4}, {0, 1, 1, 0}));
  });
  EXPECT_TRUE(trainer.unwritten_parameters().empty());
}

TEST_F(TrainerTest, CollectsLate) {
  Net now(*context), late(*context);
  Trainer prompt(now.store, now.optimizer, schedule(0.5)), tardy(late.store, late.optimizer, schedule(0.5));
  std::vector<StepReport> expected;
  for (int step = 0; step < 5; ++step) {
    expected.push_back(prompt.step(on_rows(now, 8)));
    tardy.enqueue(on_rows(late, 8));
  }
  const std::vector<StepReport> reports = tardy.collect();
  ASSERT_EQ(reports.size(), 5u);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(reports[i].step, i + 1);
    EXPECT_EQ(reports[i].loss, expected[i].loss);
    EXPECT_EQ(reports[i].gradient_norm, expected[i].gradient_norm);
  }
  EXPECT_LT(reports[4].loss, reports[0].loss);
  EXPECT_TRUE(tardy.collect().empty());
  for (uint64_t step = 0; step < Trainer::kRing + 3; ++step) tardy.enqueue(on_rows(late, 8));
  EXPECT_EQ(tardy.collect().size(), Trainer::kRing);
}

TEST_F(TrainerTest, NonFiniteStepAppliesNothingNorDoLaterOnes) {
  Net net(*context);
  Trainer trainer(net.store, net.optimizer, schedule(0.5));
  trainer.step(on_rows(net, 8));
  const auto values = to_host(*context, net.store.values()).values;
  const auto state = to_host(*context, net.store.optimizer_state(0)).values;
  const float good = x.data<float>()[3];
  x.data<float>()[3] = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(trainer.step(on_rows(net, 8)).finite);
  EXPECT_EQ(trainer.worst_parameter(), "hidden.weight");
  x.data<float>()[3] = good;
  expect_error([&] { trainer.step(on_rows(net, 8)); }, Fault::numeric, "step 2 was not finite");
  EXPECT_EQ(to_host(*context, net.store.values()).values, values);
  EXPECT_EQ(to_host(*context, net.store.optimizer_state(0)).values, state);
}

// Freezing applies from the next step on and can be reverted.
TEST_F(TrainerTest, FollowsWhatIsFrozenBetweenSteps) {
  Net net(*context);
  Trainer trainer(net.store, net.optimizer, schedule(0.5));
  const auto moves = [&](const char* name) {
    const auto before = to_host(*context, net.store.find(name)->value).values;
    trainer.step(on_rows(net, 8));
    return to_host(*context, net.store.find(name)->value).values != before;
  };
  EXPECT_TRUE(moves("hidden.weight"));
  net.store.freeze("hidden");
  EXPECT_FALSE(moves("hidden.weight"));
  EXPECT_TRUE(moves("out.weight"));
  net.store.unfreeze("hidden");
  EXPECT_TRUE(moves("hidden.weight"));
}

TEST_F(TrainerTest, RefusesAnotherStoresOptimizer) {
  Net net(*context), other(*context);
  expect_error([&] { Trainer(net.store, other.optimizer, schedule(0.5)); }, Fault::config, "another store");
}

TEST_F(TrainerTest, WorstParameter) {
  Net net(*context);
  Trainer trainer(net.store, net.optimizer, schedule(0.5));
  context->fill_zero(net.store.grads());
  net.out.bias->grad.data<float>()[2] = 3;
  EXPECT_EQ(trainer.worst_parameter(), "out.bias");
}

}  // namespace
}  // namespace dtrain
