// Training with CUDA graphs against eager steps, against the CPU, and across a checkpoint.
#include <cmath>
#include <optional>

#include "dtrain/layers.h"
#include "dtrain/ops/pointwise.h"
#include "dtrain/ops/pool.h"
#include "dtrain/train/batch_feed.h"
#include "dtrain/train/checkpoint.h"
#include "dtrain/train/trainer.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

constexpr int64_t kBatch = 2, kSize = 6, kLabels = 5;

struct Setting {
  DType dtype = DType::f32;
  bool cuda_graph = true;
  int micro_steps = 1;
  float loss_scale = 1;
  int double_loss_scale_after = 0;
  Communicator* communicator = nullptr;
};

// Residual block between stem and classifier.
struct CapturedNet {
  explicit CapturedNet(ParameterStore& store)
      : stem{Conv2d(store, "stem.conv", 3, 8, 3, {.conv = {.padding = 1}}), BatchNorm(store, "stem.bn", 8)},
        first{Conv2d(store, "first.conv", 8, 8, 3, {.conv = {.padding = 1}}), BatchNorm(store, "first.bn", 8)},
        second{Conv2d(store, "second.conv", 8, 8, 1, {}), BatchNorm(store, "second.bn", 8)},
        fc(store, "fc", 8, kLabels, Init::normal(0.5f)) {}
  Var operator()(Tape& tape, const Var& images) const {
    const Var x = stem(tape, images);
    return fc(tape, dropout(tape, global_average_pool(tape, second(tape, first(tape, x), &x)), 0.1f));
  }
  ConvBnAct stem, first, second;
  Linear fc;
};

// The net with optimizer and input on one device.
class Training {
 public:
  Training(Context& context, const Setting& setting)
      : context_(context), store(context), net_(store), setting_(setting), feed_(context, setting.micro_steps) {
    const int channels = context.is_cpu() ? 3 : 16 / static_cast<int>(size_of(setting.dtype));
    store.allocate(7, {setting.dtype, channels});
    optimizer.emplace(store, OptimizerOptions{.update = {.rule = UpdateRule::nesterov}, .weight_decay = 1e-3f});
    Schedule schedule = Schedule::parse_piecewise("0.05;5;0.02", 1);
    trainer.emplace(store, *optimizer, schedule,
                    TrainerOptions{.micro_steps = setting.micro_steps,
                                   .loss_scale = setting.loss_scale,
                                   .double_loss_scale_after = setting.double_loss_scale_after,
                                   .cuda_graph = setting.cuda_graph,
                                   .communicator = setting.communicator,
                                   .buckets = {.bytes = 256, .last_bytes = 256}});
    pixels_.dtype = setting.dtype;
    pixels_.channels = store.image_channels();
    for (int c = 0; c < 3; ++c) pixels_.mean[c] = 127, pixels_.scale[c] = 1.0f / 64;
    host_ = Tensor(std::make_shared<Storage>(context.host_allocator(), kBatch * kSize * kSize * 3), 0,
                   {kBatch, kSize, kSize, 3}, DType::u8, Device{});
    labels_ = Tensor(std::make_shared<Storage>(context.host_allocator(), kBatch * sizeof(int32_t)), 0, {kBatch},
                     DType::i32, Device{});
  }

  // Images depend on the step number only.
  void enqueue(const std::function<void(Tape&)>& also = nullptr) {
    std::vector<std::vector<Tensor>> batches;
    for (int i = 0; i < setting_.micro_steps; ++i) {
      feed_.wait_until_copied();
      fill(trainer->steps_done() * 10 + static_cast<uint64_t>(i));
      batches.push_back(feed_.put({host_, labels_}));
    }
    const auto forward = [&](Tape& tape, int micro_step) {
      const std::vector<Tensor>& batch = batches[static_cast<size_t>(micro_step)];
      if (also) also(tape);
      ++forward_passes;
      const Tensor images = normalize_pixels(context_, batch[0], pixels_);
      return softmax_cross_entropy(tape, net_(tape, tape.constant(images)), batch[1]);
    };
    trainer->enqueue(forward, {.l2_loss = true});
  }
  int forward_passes = 0;  // eager or captured ones, not launches
  std::vector<StepReport> train(uint64_t to) {
    while (trainer->steps_done() < to) enqueue();
    return trainer->collect();
  }
  // All state that training changes.
  std::vector<float> contents() {
    std::vector<float> all;
    for (const Tensor& arena : {store.values(), store.buffer_values(), store.optimizer_state(0)}) {
      const std::vector<float> values = values_of<float>(context_, arena);
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }

 private:
  void fill(uint64_t number) {
    const Array noise = random_array({kBatch * kSize * kSize * 3}, number, 0, 255);
    for (int64_t i = 0; i < noise.count(); ++i) host_.data<uint8_t>()[i] = static_cast<uint8_t>(noise[i]);
    for (int64_t i = 0; i < kBatch; ++i)
      labels_.data<int32_t>()[i] = static_cast<int32_t>((number + static_cast<uint64_t>(i)) % kLabels);
  }

  Context& context_;

 public:
  ParameterStore store;

 private:
  CapturedNet net_;
  Setting setting_;
  BatchFeed feed_;
  PixelNormalization pixels_;
  Tensor host_, labels_;

 public:
  std::optional<Optimizer> optimizer;
  std::optional<Trainer> trainer;
};

class CapturedSteps : public testing::Test {
 protected:
  void SetUp() override {
    std::string reason;
    if (cuda_device_count(&reason) == 0) GTEST_SKIP() << "SKIPPED: no GPU: " << reason;
  }
  // A separate, deterministic context.
  static std::unique_ptr<Context> gpu() { return make_gpu_context({.deterministic = true}); }
};

// Records memory in use at each all-reduce.
class MemoryAtSums : public Communicator {
 public:
  MemoryAtSums(Group& group, Context& context) : Communicator(group), context_(context) {}
  void all_reduce(std::span<const Tensor>, const std::string&, bool) override {
    in_use.push_back(context_.memory_stats().in_use);
  }
  void broadcast(const Tensor&, int, const std::string&) override {}
  void join() override {}
  std::string describe() const override { return ""; }
  CommunicatorTimes take_times() override { return {}; }

  std::vector<size_t> in_use;

 private:
  Context& context_;
};

// Kernels of all-reduce must not be counted as time of the measured ones.
TEST_F(CapturedSteps, WhatMeasuresSumsAtItsEnd) {
  const auto context = make_gpu_context();
  const auto group = make_single_group();
  MemoryAtSums sums(*group, *context);
  Training training(*context, {.cuda_graph = false, .communicator = &sums});
  training.train(1);
  ASSERT_GT(sums.in_use.size(), 2u);
  for (const size_t in_use : sums.in_use) EXPECT_EQ(in_use, sums.in_use.back()) << "all activations are gone";
  sums.in_use.clear();
  training.train(2);
  EXPECT_GT(sums.in_use.front(), sums.in_use.back()) << "sums begin while the backward pass goes on";
}

void expect_equal_reports(const std::vector<StepReport>& a, const std::vector<StepReport>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].step, b[i].step);
    EXPECT_EQ(a[i].loss, b[i].loss) << "step " << a[i].step;
    EXPECT_EQ(a[i].l2_loss, b[i].l2_loss);
    EXPECT_EQ(a[i].gradient_norm, b[i].gradient_norm);
    EXPECT_EQ(a[i].learning_rate, b[i].learning_rate);
    EXPECT_EQ(a[i].loss_scale, b[i].loss_scale);
    EXPECT_EQ(a[i].metrics, b[i].metrics);
  }
}

TEST_F(CapturedSteps, EqualEagerSteps) {
  const Setting runs[] = {
      {},
      {.dtype = DType::f16, .micro_steps = 2, .loss_scale = 256, .double_loss_scale_after = 2},
  };
  for (Setting setting : runs) {
    const auto context = gpu(), other = gpu();
    Training recorded(*context, setting);
    setting.cuda_graph = false;
    Training eager(*other, setting);
    constexpr uint64_t kSteps = 6;
    const std::vector<StepReport> reports = recorded.train(kSteps);
    expect_equal_reports(reports, eager.train(kSteps));
    EXPECT_TRUE(recorded.contents() == eager.contents()) << setting.dtype;
    EXPECT_EQ(recorded.forward_passes, (Trainer::kEagerSteps + 1) * setting.micro_steps) << "no graph was launched";
    EXPECT_EQ(reports[kSteps - 1].learning_rate, 0.02f);
    EXPECT_NE(reports[kSteps - 1].loss, reports[kSteps - 2].loss);
    if (setting.double_loss_scale_after > 0) {
      EXPECT_EQ(reports[kSteps - 1].loss_scale, 8 * setting.loss_scale);
    }
  }
}

TEST_F(CapturedSteps, AgreesWithTheCpu) {
  const auto context = gpu(), cpu = make_cpu_context();
  Training there(*context, {}), here(*cpu, {});
  const std::vector<StepReport> a = there.train(6), b = here.train(6);
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_NEAR(a[i].loss, b[i].loss, 1e-4 * b[i].loss) << "step " << a[i].step;
    EXPECT_NEAR(a[i].l2_loss, b[i].l2_loss, 1e-5 * b[i].l2_loss);
  }
  expect_close(to_host(*context, there.store.values()), to_host(*cpu, here.store.values()), 1e-4, "values");
}

TEST_F(CapturedSteps, RunsAheadAndReportsEveryStepOnce) {
  const auto context = gpu(), other = gpu();
  Training ahead(*context, {}), prompt(*other, {});
  std::vector<StepReport> reports;
  for (int step = 0; step < 6; ++step) {
    ahead.enqueue();
    for (const StepReport& report : ahead.trainer->collect(2)) reports.push_back(report);
    EXPECT_GE(reports.size() + 2, ahead.trainer->steps_done());
  }
  for (const StepReport& report : ahead.trainer->collect()) reports.push_back(report);
  std::vector<StepReport> expected;
  for (uint64_t step = 1; step <= 6; ++step) expected.push_back(prompt.train(step).at(0));
  expect_equal_reports(reports, expected);
}

// Eager or in a graph, and however many steps are in flight.
TEST_F(CapturedSteps, TellTheTimesOfTheirParts) {
  const auto context = gpu();
  Training training(*context, {.micro_steps = 2});
  double largest_share = 0;
  for (const StepReport& report : training.train(Trainer::kEagerSteps + 4)) {
    const StepTimes& times = report.times;
    for (double part : {times.forward, times.backward, times.update}) EXPECT_GT(part, 0) << "step " << report.step;
    EXPECT_EQ(times.reduce, 0);
    const double sum = times.forward + times.backward + times.update;
    EXPECT_LE(sum, 1.001 * times.step) << "step " << report.step;
    if (report.step > Trainer::kEagerSteps) largest_share = std::max(largest_share, sum / times.step);
  }
  EXPECT_GT(largest_share, 0.5);
}

TEST_F(CapturedSteps, NamesTheOpThatWaitsDuringCapture) {
  const auto context = gpu();
  Training training(*context, {});
  const auto look = [](Tape& tape) {
    float value = 0;
    if (tape.context().capturing()) tape.context().download(tape.context().empty({1}), &value, "clip_boxes");
  };
  for (int step = 0; step < Trainer::kEagerSteps; ++step) training.enqueue(look);
  expect_error([&] { training.enqueue(look); }, Fault::config,
               "capturing step 4, in the forward pass after the first op: clip_boxes: waits for the device");
  // The trainer stays usable: the next attempt captures.
  training.trainer->collect();
  training.enqueue();
  EXPECT_TRUE(std::isfinite(training.trainer->collect().at(0).loss));
}

// A graph's pool is in addition to the memory reserved already.
TEST_F(CapturedSteps, RunsOnAndSaysSoWhereMemoryDoesNotSuffice) {
  const auto context = make_gpu_context({.memory_cap = size_t{32} << 20, .deterministic = true}), other = gpu();
  Training short_of_memory(*context, {}), eager(*other, {.cuda_graph = false});
  expect_equal_reports(short_of_memory.train(5), eager.train(5));
  ASSERT_EQ(context->notices().size(), 1u);
  EXPECT_NE(context->notices()[0].find("without CUDA graph: capturing step 4"), std::string::npos)
      << context->notices()[0];
}

TEST_F(CapturedSteps, GoesOnFromACheckpointBitForBit) {
  const Setting setting{.dtype = DType::bf16};
  const TempDirectory directory;
  const CheckpointOptions options{.train_dir = directory.path().string(), .asynchronous = false};
  const auto ignore = [](const std::string&) {};
  const auto context = gpu(), first = gpu(), second = gpu();
  Training unbroken(*context, setting), broken(*first, setting), resumed(*second, setting);
  unbroken.train(8);
  {
    broken.train(4);
    Checkpointer checkpoints(broken.store, options, ignore);
    TrainState state{.step = 4};
    state.device = broken.trainer->step_state();
    checkpoints.save(state);
  }
  Checkpointer checkpoints(resumed.store, options, ignore);
  const auto report = checkpoints.restore_latest(TrainState{});
  ASSERT_TRUE(report);
  resumed.trainer->resume(report->state.step, report->state.device);
  resumed.train(8);
  EXPECT_TRUE(resumed.contents() == unbroken.contents());
}

}  // namespace
}  // namespace dtrain
