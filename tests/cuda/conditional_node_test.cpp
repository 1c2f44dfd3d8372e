// Conditional nodes: skipped by the device, decided anew in each launch.
#include <set>

#include "dtrain/ops/pointwise.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

class ConditionalNode : public testing::Test {
 protected:
  void SetUp() override {
    std::string reason;
    if (cuda_device_count(&reason) == 0) GTEST_SKIP() << "SKIPPED: no GPU: " << reason;
    context_ = make_gpu_context();
    one_ = filled(1), count_ = filled(0), first_ = filled(0), second_ = filled(0), always_ = filled(0);
  }
  Tensor filled(float value) { return to_device(*context_, Array({1}, value)); }
  float value(const Tensor& x) { return values_of<float>(*context_, x)[0]; }
  void set_count(float value) { context_->copy(filled(value), count_); }

  // Adds one to three scalars: first_ if the count exceeds 1, second_ if it exceeds 2, always_.
  void add_ones() {
    context_->run_or_skip(count_, 1, [&] { accumulate(*context_, one_, first_); });
    context_->run_or_skip(count_, 2, [&] {
      const Tensor zero = context_->empty({1});
      context_->fill_zero(zero);
      accumulate(*context_, one_, zero);
      // Nested in a conditional node: part of its body.
      context_->run_or_skip(count_, 9, [&] { accumulate(*context_, zero, second_); });
    });
    accumulate(*context_, one_, always_);
  }

  std::unique_ptr<Context> context_;
  Tensor one_, count_, first_, second_, always_;
};

TEST_F(ConditionalNode, IsSkippedInLaunchesOnly) {
  add_ones();
  EXPECT_EQ(value(first_), 1) << "a step that is not recorded leaves out nothing";
  EXPECT_EQ(value(second_), 1);
  const auto graph = context_->capture([&] { add_ones(); });
  for (const float count : {0, 3, 1, 2, 2}) {
    set_count(count);
    context_->launch(*graph);
  }
  EXPECT_EQ(value(first_), 1 + 3);
  EXPECT_EQ(value(second_), 1 + 1);
  EXPECT_EQ(value(always_), 1 + 5);
}

TEST_F(ConditionalNode, EachLaunchHasItsOwnStamps) {
  const auto graph = context_->capture([&] {
    context_->stamp();
    add_ones();
    context_->stamp();
  });
  const Event begin = context_->record();
  for (int round = 0; round < 2; ++round) {
    std::vector<std::vector<Event>> launches;  // all are enqueued before any is read
    for (int i = 0; i < 4; ++i) launches.push_back(context_->launch(*graph));
    context_->wait(context_->record());
    double last = 0;
    for (const std::vector<Event>& stamps : launches) {
      ASSERT_EQ(stamps.size(), 2u);
      for (const Event& stamp : stamps) {
        const double at = context_->seconds_between(begin, stamp);
        EXPECT_GT(at, last);
        last = at;
      }
    }
  }
}

TEST_F(ConditionalNode, MayFail) {
  expect_error(
      [&] {
        context_->capture([&] {
          add_ones();
          context_->run_or_skip(count_, 0, [&] {
            accumulate(*context_, one_, first_);
            throw Error(Fault::data, "of the work");
          });
        });
      },
      Fault::data, "of the work");
  EXPECT_FALSE(context_->capturing());
  expect_error([&] { context_->capture([&] { context_->run_or_skip(count_, 0, [&] { context_->stamp(); }); }); },
               Fault::config, "stamp: not allowed in a conditional node");
  add_ones();
  EXPECT_EQ(value(first_), 1);
  const auto graph = context_->capture([&] { add_ones(); });
  set_count(2);
  context_->launch(*graph);
  EXPECT_EQ(value(first_), 2);
}

TEST(RunOrSkip, IsRunOnACpu) {
  const auto cpu = make_cpu_context();
  int runs = 0;
  cpu->run_or_skip(cpu->zeros({1}), 5, [&] { ++runs; });
  EXPECT_EQ(runs, 1);
  expect_error([&] { cpu->run_or_skip(cpu->zeros({2}), 5, [] {}); }, Fault::config, "a count [2] of f32");
}

}  // namespace
}  // namespace dtrain
