// Losses with named metrics: column layout, reported values, and constant buffers.
#include "dtrain/train/loss.h"

#include "dtrain/layers.h"
#include "dtrain/train/trainer.h"
#include "tests/distributed/thread_communicator.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

TEST(Loss, MetricsThatShareAWeightShareItsColumn) {
  const auto context = make_cpu_context();
  const Tensor total = to_device(*context, Array({1}, 2)), hits = context->zeros({6}), weight = context->zeros({6});
  MetricColumns columns;
  const Loss loss({total}, {{"a", hits, weight}, {"b", total}, {"c", hits, weight}});
  EXPECT_EQ(columns.sums_of(loss).size(), 5u);  // total, a, b, c, common weight of a and c
  const float row[] = {6, 3, 9, 1, 4};
  EXPECT_EQ(MetricColumns::total(row, 3), 2);
  EXPECT_EQ(columns.values(row, 3), (std::vector<MetricValue>{{"a", 0.75}, {"b", 3}, {"c", 0.25}}));
}

TEST(Loss, AMetricWithoutWeightIsZero) {
  const auto context = make_cpu_context();
  const Tensor one = context->zeros({1}), weight = context->zeros({2});
  MetricColumns columns;
  columns.sums_of(Loss({one}, {{"recall", one, weight}}));
  const float row[] = {1, 0, 0};
  EXPECT_EQ(columns.values(row, 1), (std::vector<MetricValue>{{"recall", 0}}));
}

TEST(Loss, RefusesOtherMetricsThanBefore) {
  const auto context = make_cpu_context();
  const Tensor one = context->zeros({1});
  MetricColumns columns;
  columns.sums_of(Loss({one}, {{"a", one}}));
  expect_error([&] { columns.sums_of(Loss({one}, {{"b", one}})); }, Fault::config, "others than in the steps before");
  expect_error([&] { columns.sums_of(Loss(Var{one})); }, Fault::config, "others than in the steps before");
  expect_error([&] { columns.sums_of(Loss({one}, {{"a", {}}})); }, Fault::config, "metric a");
  expect_error([&] { columns.sums_of(Loss(Var{context->zeros({2})})); }, Fault::config, "found [2]");
}

// The metric "share" is a ratio of sums over micro-steps whose weights differ, not a mean of ratios.
TEST(Loss, AStepReportsRatiosOfSums) {
  for (const auto& context : devices()) {
    ParameterStore store(*context);
    const Linear linear(store, "linear", 4, 1, Init::normal(0.5f));
    store.allocate(3);
    Optimizer optimizer(store, {});
    Trainer trainer(store, optimizer, {.base = 0.1}, {.micro_steps = 2});
    const Tensor x = to_device(*context, random_array({1, 4}, 5));
    const Tensor hits[] = {to_device(*context, Array({3}, 1)), to_device(*context, Array({1}, 0))};
    const Tensor weights[] = {to_device(*context, Array({3}, 1)), to_device(*context, Array({1}, 1))};
    const StepReport report = trainer.step([&](Tape& tape, int micro_step) {
      return Loss(linear(tape, tape.constant(x)), {{"share", hits[micro_step], weights[micro_step]}});
    });
    EXPECT_EQ(report.metric("share"), 0.75);
    expect_error([&] { report.metric("top_1_accuracy"); }, Fault::config, "no metric 'top_1_accuracy'");
  }
}

// Three of three on one rank and none of one on the other give 75 % on both, not the mean of 100 % and 0 %.
TEST(Loss, RatiosAreOfTheSumsOverRanks) {
  on_ranks(
      2, [] { return make_cpu_context({.threads = 1}); },
      [](Context& context, ThreadCommunicator& communicator) {
        ParameterStore store(context);
        const Linear linear(store, "linear", 4, 1, Init::normal(0.5f));
        store.allocate(3);
        Optimizer optimizer(store, {});
        Trainer trainer(store, optimizer, {.base = 0.1}, {.communicator = &communicator});
        const bool first = communicator.rank() == 0;
        const Tensor x = to_device(context, random_array({1, 4}, 5));
        const Tensor hits = to_device(context, first ? Array({3}, 1) : Array({1}, 0));
        const Tensor weights = to_device(context, first ? Array({3}, 1) : Array({1}, 1));
        const StepReport report = trainer.step([&](Tape& tape, int) {
          return Loss(linear(tape, tape.constant(x)), {{"share", hits, weights}});
        });
        EXPECT_EQ(report.metric("share"), 0.75) << "rank " << communicator.rank();
      });
}

// Three micro-steps on three ranks: multiplying by N and 1 / N in f32 would change values that are no sums of powers of
// two. A constant buffer keeps its bits; others are averaged.
TEST(Loss, ConstantBuffersKeepTheirBits) {
  const auto make_context = [] { return make_cpu_context({.threads = 1}); };
  on_ranks(3, make_context, [](Context& context, ThreadCommunicator& communicator) {
    ParameterStore store(context);
    const Linear linear(store, "linear", 4, 1, Init::normal(0.5f));
    store.add_buffer("before", {3}, 0.1f);
    store.add_buffer("frozen", {200}, 0.7f, /*constant=*/true);
    store.add_buffer("after", {3}, 0.1f);
    store.allocate(1);
    const Tensor frozen = store.find_buffer("frozen")->value;
    const Array odd = rounded(random_array({200}, 7), DType::f32);
    context.copy(to_device(context, odd), frozen);
    Optimizer optimizer(store, {});
    Trainer trainer(store, optimizer, {.base = 0.1}, {.micro_steps = 3, .communicator = &communicator});
    const Tensor x = to_device(context, random_array({1, 4}, 5));
    trainer.step([&](Tape& tape, int) {
      const std::vector<float> own(3, static_cast<float>(communicator.rank()));
      for (const char* name : {"before", "after"}) context.upload(own.data(), store.find_buffer(name)->value);
      return Loss(linear(tape, tape.constant(x)));
    });
    EXPECT_EQ(to_host(context, frozen).values, odd.values);
    for (const char* name : {"before", "after"})
      EXPECT_EQ(values_of<float>(context, store.find_buffer(name)->value), std::vector<float>(3, 1)) << name;
  });
}

}  // namespace
}  // namespace dtrain
