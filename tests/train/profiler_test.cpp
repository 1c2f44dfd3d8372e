// Profiler records, and that profiling changes no result.
#include "dtrain/core/profiler.h"

#include <algorithm>
#include <tuple>

#include "dtrain/layers.h"
#include "dtrain/ops/pointwise.h"
#include "dtrain/train/profile.h"
#include "dtrain/train/trainer.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

constexpr int64_t kImages = 2, kClassesSeen = 4;

struct ObservedNet {
  explicit ObservedNet(Context& c)
      : store(c),
        first(store, "first", 3, 8, 3, {.conv = {.padding = 1}}),
        norm(store, "norm", 8),
        last(store, "last", 8, kClassesSeen, Init::normal(0.5f)),
        optimizer((store.allocate(3), store), {.update = {.rule = UpdateRule::momentum}}) {}

  Classification loss(Tape& tape, const Tensor& x, const Tensor& labels) const {
    const Var y = ConvBnAct{first, norm}(tape, tape.constant(x));
    return softmax_cross_entropy(tape, last(tape, global_average_pool(tape, y)), labels);
  }

  ParameterStore store;
  Conv2d first;
  BatchNorm norm;
  Linear last;
  Optimizer optimizer;
};

struct ProfilerTest : testing::Test {
  // Runs three steps; `profiler` records the second.
  std::vector<float> train(Profiler* profiler) {
    ObservedNet net(*context);
    Trainer trainer(net.store, net.optimizer, {.base = 0.5});
    for (int step = 1; step <= 3; ++step) {
      if (profiler && step == 2) profiler->begin_step("step 2");
      trainer.step([&](Tape& tape, int) { return net.loss(tape, x, labels); });
      if (profiler) profiler->end_step();
    }
    std::vector<float> values(static_cast<size_t>(net.store.values().count()));
    context->download(net.store.values(), values.data(), "test");
    return values;
  }
  std::vector<WorkRecord> observe() {
    Profiler profiler(*context);
    train(&profiler);
    return profiler.take();
  }

  std::unique_ptr<Context> context = make_cpu_context({.threads = 1});
  Tensor x = to_device(*context, random_array({kImages, 6, 6, 3}, 5));
  Tensor labels = to_device<int32_t>(*context, {kImages}, {0, 3});
};

// By op, phase and layer.
using Seen = std::tuple<std::string, std::string, std::string>;

std::vector<Seen> ops_of(const std::vector<WorkRecord>& records) {
  std::vector<Seen> ops;
  for (const WorkRecord& record : records)
    if (record.level == WorkLevel::op) ops.emplace_back(record.name, record.phase, record.layer());
  return ops;
}

TEST_F(ProfilerTest, SeesEachOpForwardAndBackward) {
  const std::vector<Seen> expected = {
      {"conv2d", "forward", "first"},           {"batch_norm", "forward", "norm"},
      {"global_average_pool", "forward", ""},   {"linear", "forward", "last"},
      {"softmax_cross_entropy", "forward", ""}, {"softmax_cross_entropy", "backward", ""},
      {"linear", "backward", "last"},           {"global_average_pool", "backward", ""},
      {"batch_norm", "backward", "norm"},       {"conv2d", "backward", "first"},
  };
  EXPECT_EQ(ops_of(observe()), expected);
}

TEST_F(ProfilerTest, RecordsLieWithinThoseThatHoldThem) {
  const std::vector<WorkRecord> records = observe();
  ASSERT_EQ(records.front().level, WorkLevel::step);
  std::vector<const WorkRecord*> open;
  constexpr double kRounding = 2e-9;
  for (const WorkRecord& record : records) {
    open.resize(static_cast<size_t>(record.depth));
    if (!open.empty()) {
      const WorkRecord& holder = *open.back();
      const double late = std::chrono::duration<double>(record.begin - holder.begin).count();
      EXPECT_GE(late, -kRounding) << record.name;
      EXPECT_LE(late + record.seconds, holder.seconds + kRounding) << record.name << " in " << holder.name;
      EXPECT_TRUE(holder.level < record.level ||  // a kernel may name its algorithm
                  (holder.level == WorkLevel::kernel && record.level == WorkLevel::kernel));
    }
    EXPECT_GE(record.seconds, 0);
    open.push_back(&record);
  }
  const auto kernels = [&](const char* name) { return std::ranges::count(records, name, &WorkRecord::name); };
  EXPECT_EQ(kernels("linear_wgrad"), 1);
  for (const char* phase : {"input", "forward", "backward"}) EXPECT_EQ(kernels(phase), 1) << phase;
  EXPECT_EQ(kernels("update"), 2);  // phase and kernel
}

TEST_F(ProfilerTest, CountsOperationsAndBytes) {
  for (const WorkRecord& record : observe()) {
    if (record.level != WorkLevel::op) continue;
    const bool backward = record.phase == "backward";
    if (record.name == "conv2d") {
      EXPECT_EQ(record.inputs, (std::vector<Shape>{{kImages, 6, 6, 3}, {8, 3, 3, 3}}));
      EXPECT_EQ(record.output, (Shape{kImages, 6, 6, 8}));
      EXPECT_EQ(record.parameters, std::vector<std::string>{"first.weight"});
      // The images need no gradient: counted once per direction.
      EXPECT_EQ(record.flops, 2.0 * kImages * 36 * 8 * 27);
      EXPECT_EQ(record.bytes, (backward ? 2 : 1) * 4.0 * (kImages * 36 * (3 + 8) + 8 * 27));
    } else if (record.name == "linear") {
      EXPECT_EQ(record.flops, (backward ? 2 : 1) * 2.0 * kImages * 8 * kClassesSeen);
      EXPECT_EQ(record.parameters, std::vector<std::string>{"last.weight"});
    } else {
      EXPECT_EQ(record.flops, 0) << record.name;
    }
  }
}

TEST_F(ProfilerTest, ChangesNoWeight) {
  Profiler profiler(*context);
  EXPECT_EQ(train(nullptr), train(&profiler));
  EXPECT_EQ(context->profiler(), nullptr);
}

TEST_F(ProfilerTest, RowsAddUpToTheSteps) {
  const std::vector<WorkRecord> records = observe();
  for (const ProfileBy by : {ProfileBy::op, ProfileBy::layer, ProfileBy::shapes}) {
    const std::vector<ProfileRow> rows = profile_rows(records, by);
    double sum = 0;
    for (const ProfileRow& row : rows) {
      sum += row.seconds;
      EXPECT_GE(row.seconds, -1e-8) << row.name;
      EXPECT_TRUE(row.group.empty() || by != ProfileBy::op) << row.group;
      if (by == ProfileBy::shapes && row.name == "conv2d") {
        EXPECT_EQ(row.group, concat("[", kImages, ", 6, 6, 3] x [8, 3, 3, 3]"));
      }
    }
    EXPECT_NEAR(sum, step_seconds(records), 1e-9);
    EXPECT_TRUE(std::ranges::is_sorted(rows, std::greater<>(), &ProfileRow::seconds));
  }
}

TEST(ProfileRows, NameTheAlgorithmsOfEachPass) {
  const auto record = [](WorkLevel level, int depth, const char* name) {
    return WorkRecord{.level = level, .depth = depth, .name = name, .phase = "backward"};
  };
  const std::vector<WorkRecord> records = {
      record(WorkLevel::step, 0, "step"),         record(WorkLevel::phase, 1, "backward"),
      record(WorkLevel::op, 2, "conv2d"),         record(WorkLevel::kernel, 3, "conv2d_wgrad"),
      record(WorkLevel::kernel, 4, "onednn"),     record(WorkLevel::kernel, 3, "conv2d_dgrad"),
      record(WorkLevel::kernel, 4, "winograd"),   record(WorkLevel::op, 2, "linear"),
      record(WorkLevel::kernel, 3, "linear_grad")};
  std::string algorithms;
  for (const ProfileRow& row : profile_rows(records, ProfileBy::op))
    if (row.name == "conv2d")
      algorithms = row.algorithms;
    else
      EXPECT_EQ(row.algorithms, "") << row.name;
  EXPECT_EQ(algorithms, "dgrad winograd, wgrad onednn");
}

TEST_F(ProfilerTest, AStepDoesNotBelongToThePhaseThatTheOneBeforeEndedIn) {
  Profiler profiler(*context);
  for (int step = 0; step < 2; ++step) {
    profiler.begin_step("a step");
    context->name_work("forward");
    profiler.end_step();
  }
  for (const WorkRecord& record : profiler.take())
    EXPECT_TRUE(record.level != WorkLevel::step || record.phase.empty()) << record.phase;
}

TEST_F(ProfilerTest, OneAtATime) {
  Profiler one(*context), other(*context);
  one.begin_step("a step");
  EXPECT_THROW(other.begin_step("a step"), Error);
  EXPECT_THROW(one.take(), Error);
  one.end_step();
  EXPECT_EQ(one.take().size(), 2u);  // step and input
  EXPECT_TRUE(one.take().empty());
}

}  // namespace
}  // namespace dtrain
