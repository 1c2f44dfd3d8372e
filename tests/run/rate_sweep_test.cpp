// Learning-rate range test: smoothing, stop, suggestion, and the sweep on one and two ranks.
#include "libdtrain/run/rate_sweep.h"

#include <cmath>

#include "tests/distributed/thread_communicator.h"
#include "tests/run/drawn_task.h"

namespace dtrain {
namespace {

// Fall until about step 50, then grow without bound.
std::vector<double> losses_of_a_sweep() {
  std::vector<double> losses;
  for (int i = 0; i < 100; ++i) losses.push_back(2.3 - 1 / (1 + std::exp((50 - i) / 5.0)) + std::exp((i - 80) / 3.0));
  return losses;
}

// Expected values: PyTorch Lightning's formulas in Python.
TEST(RateSweep, SmoothsEndsAndSuggestsAsLightningDoes) {
  const RateSweep sweep = evaluate_sweep({}, losses_of_a_sweep());
  ASSERT_EQ(sweep.points.size(), 93u);
  EXPECT_TRUE(sweep.diverged);
  EXPECT_NEAR(sweep.points[50].smoothed, 2.195922029811551, 1e-12);
  EXPECT_EQ(sweep.suggestion, 59u);
  const RateSweep plain = evaluate_sweep({.smoothing = 0}, losses_of_a_sweep());
  EXPECT_EQ(plain.points.size(), 85u);
  EXPECT_EQ(plain.suggestion, 50u);
  EXPECT_EQ(evaluate_sweep({.smoothing = 0, .stop_factor = 0}, losses_of_a_sweep()).points.size(), 100u);
}

TEST(RateSweep, RatesGrowByOneFactor) {
  const RateSweep sweep = evaluate_sweep({.first = 1e-6, .last = 1e-2, .steps = 5}, {5, 4, 3, 2, 1});
  ASSERT_EQ(sweep.points.size(), 5u);
  for (int i = 0; i < 5; ++i)
    EXPECT_NEAR(sweep.points[static_cast<size_t>(i)].rate, 1e-6 * std::pow(10, i), 1e-8 * std::pow(10, i) / 100);
  EXPECT_FALSE(sweep.diverged);
}

TEST(RateSweep, SuggestsNothingWhereTooLittleIsKnown) {
  EXPECT_FALSE(evaluate_sweep({}, {}).suggestion);
  EXPECT_FALSE(evaluate_sweep({}, std::vector<double>(12, 2.0)).suggestion);
  EXPECT_FALSE(evaluate_sweep({}, std::vector<double>(50, 2.0)).suggestion) << "the loss does not fall";
  const RateSweep broken = evaluate_sweep({}, {2, 2, NAN, 1});
  EXPECT_TRUE(broken.diverged);
  EXPECT_EQ(broken.points.size(), 2u);
  expect_error([] { evaluate_sweep({.first = 1, .last = 1}, {}); }, Fault::config, "expected positive rates that grow");
  expect_error([] { evaluate_sweep({.steps = 1}, {}); }, Fault::config, "expected 2 or more");
}

// The eighth batch contains a NaN.
class PoisonedTask : public DrawnTask {
 public:
  using DrawnTask::DrawnTask;
  BatchInfo load(int micro_step) override {
    const BatchInfo info = DrawnTask::load(micro_step);
    const float poison = NAN;
    if (++loads_ == 8) store.context().upload(&poison, batches_[0].images.view({kBatch * kInputs}).slice(0, 1));
    return info;
  }

 private:
  int loads_ = 0;
};

class RateSweepRun : public RunTest {
 protected:
  template <class SweptTask = DrawnTask>
  static std::optional<RateSweep> sweep(Context& own, Group& ranks, const RunOptions& run, const RateSweepOptions& with,
                                        Communicator* communicator = nullptr, const std::function<bool()>& stop = {}) {
    SweptTask task(own, ranks);
    Optimizer optimizer(task.store, {.update = {.rule = UpdateRule::momentum}});
    return sweep_learning_rate(task, optimizer, task.store, {.seed = 5, .communicator = communicator}, ranks, run, with,
                               {}, stop);
  }
};

TEST_F(RateSweepRun, TrainsAtGrowingRatesAndSavesNothing) {
  const auto found = sweep(*context, *group, saving(7), {.first = 1e-4, .last = 10, .steps = 60});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->points.size(), 60u);
  EXPECT_LT(found->points.back().smoothed, found->points.front().smoothed);
  ASSERT_TRUE(found->suggestion);
  const double rate = found->points[*found->suggestion].rate;
  EXPECT_TRUE(rate > 1e-3 && rate < 10) << rate;
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
  // Reference: steps at the points' rates.
  Rig rig(*context, *group);
  Trainer trainer(rig.task.store, rig.optimizer, {.base = 1e-4}, {.seed = 5});
  rig.task.load(0);
  EXPECT_EQ(found->points[0].loss, trainer.step([&](Tape& tape, int) { return rig.task.forward(tape, 0); }).loss);
}

TEST_F(RateSweepRun, EndsWhereTheLossIsNoNumberAndOnRequest) {
  const auto found = sweep<PoisonedTask>(*context, *group, options(1), {});
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->diverged);
  EXPECT_EQ(found->points.size(), 7u);
  EXPECT_FALSE(sweep(*context, *group, options(1), {}, nullptr, [] { return true; }));
}

TEST_F(RateSweepRun, RanksFindTheSame) {
  std::vector<double> losses[2];
  std::optional<size_t> suggestions[2];
  on_ranks(
      2, [] { return make_cpu_context({.threads = 1}); },
      [&](Context& own, ThreadCommunicator& communicator) {
        const auto found =
            sweep(own, communicator.group(), options(1), {.first = 1e-3, .last = 1e6, .steps = 60}, &communicator);
        for (const auto& point : found->points) losses[communicator.rank()].push_back(point.loss);
        suggestions[communicator.rank()] = found->suggestion;
      });
  EXPECT_EQ(losses[0], losses[1]);
  EXPECT_FALSE(losses[0].empty());
  EXPECT_LT(losses[0].size(), 60u) << "it has diverged";
  EXPECT_EQ(suggestions[0], suggestions[1]);
}

}  // namespace
}  // namespace dtrain
