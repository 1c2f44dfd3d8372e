// Run of a small task: events, checkpoints, evaluations, stops, misuse.
#include "dtrain/run/run.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include "dtrain/train/averaged.h"
#include "libdtrain/train/checkpoint_files.h"
#include "tests/run/drawn_task.h"

namespace dtrain {
namespace {

TEST_F(RunTest, ObserversHearWhatHappensInOrder) {
  Rig rig(*context, *group);
  Diary diary;
  RunOptions with = saving(5);
  with.cadence.evaluate_after = [](uint64_t step) { return step == 3; };
  dtrain::Run run(rig.task, rig.trainer, *group, with, {&diary});
  EXPECT_EQ(run.train(), Outcome::finished);
  EXPECT_EQ(diary.entries, (std::vector<std::string>{"begun 0", "stepped 1", "stepped 2", "stepped 3", "evaluating 3",
                                                     "evaluated 3", "stepped 4", "stepped 5", "ended 5"}));
  EXPECT_EQ(diary.shown, (std::vector<uint64_t>{1, 3}));
  EXPECT_EQ(diary.saves, (std::vector<uint64_t>{2, 4, 5}));
  EXPECT_TRUE(diary.last.resumes);
  EXPECT_EQ(diary.last.result.examples, 20u);
  EXPECT_EQ(diary.last.result.value("top_5_accuracy"), 1) << "there are three classes";
  EXPECT_GT(diary.last.result.value("loss"), 0);
  EXPECT_EQ(run.step(), 5u);
  EXPECT_EQ(run.evaluate()->examples, 20u);
}

TEST_F(RunTest, AResumedRunEndsWithTheSameBits) {
  Rig whole(*context, *group);
  dtrain::Run(whole.task, whole.trainer, *group, options(7)).train();
  {
    Rig first(*context, *group);
    dtrain::Run(first.task, first.trainer, *group, saving(4)).train();
  }
  Rig second(*context, *group);
  Diary diary;
  dtrain::Run(second.task, second.trainer, *group, saving(7), {&diary}).train();
  EXPECT_EQ(diary.entries.front(), "begun 4");
  EXPECT_EQ(diary.losses.begin()->first, 5u);
  EXPECT_EQ(second.values(), whole.values());
}

// The host waits for the last steps of a run together.
TEST_F(RunTest, StepsThatAreFoundDoneTogetherShareTheirTime) {
  for (const auto& device : devices()) {
    if (device->is_cpu()) continue;
    Rig rig(*device, *group);
    Diary diary;
    dtrain::Run(rig.task, rig.trainer, *group, options(8), {&diary}).train();
    ASSERT_EQ(diary.seconds.size(), 8u);
    EXPECT_GT(diary.seconds[8], 0);
    EXPECT_EQ(diary.seconds[8], diary.seconds[7]);
  }
}

// Task whose optimizer keeps a moving average.
struct AveragingRig {
  AveragingRig(Context& context, Group& group, Communicator* communicator = nullptr)
      : task(context, group),
        optimizer(task.store, {.update = {.average_decay = 0.9f}, .averages = true}),
        trainer(task.store, optimizer, {.base = 0.1}, {.seed = 5, .communicator = communicator}) {}
  std::vector<float> average() { return values_of<float>(task.store.context(), optimizer.average()); }
  std::vector<float> values() { return values_of<float>(task.store.context(), task.store.values()); }

  DrawnTask task;
  Optimizer optimizer;
  Trainer trainer;
};

TEST_F(RunTest, AnAverageIsEvaluatedBesideTheParametersAndResumed) {
  AveragingRig whole(*context, *group), plain(*context, *group);
  RunOptions with = options(7);
  with.cadence.evaluate_after = [](uint64_t step) { return step == 3; };
  Diary diary;
  dtrain::Run(whole.task, whole.trainer, *group, with, {&diary}).train();
  dtrain::Run(plain.task, plain.trainer, *group, options(3)).train();
  const double loss = diary.last.result.value("loss"), averaged = diary.last.result.value("averaged_loss");
  EXPECT_NE(loss, averaged);
  EXPECT_EQ(std::ranges::count(diary.entries, "evaluating 3"), 1);
  dtrain::Run run(plain.task, plain.trainer, *group, options(3));
  EXPECT_EQ(run.evaluate()->value("averaged_loss"), averaged);
  with_average(plain.task.store, plain.optimizer.average(),
               [&] { EXPECT_EQ(run.evaluate()->value("loss"), averaged); });
  EXPECT_EQ(run.evaluate()->value("loss"), loss);
  {
    AveragingRig first(*context, *group);
    dtrain::Run(first.task, first.trainer, *group, saving(4)).train();
  }
  AveragingRig second(*context, *group);
  dtrain::Run(second.task, second.trainer, *group, saving(7)).train();
  EXPECT_EQ(second.values(), whole.values());
  EXPECT_EQ(second.average(), whole.average());
  EXPECT_NE(whole.average(), whole.values());
}

// Weights loaded after the optimizer's construction enter the average.
TEST_F(RunTest, AnAverageBeginsWithTheParametersOfTheRun) {
  AveragingRig rig(*context, *group);
  const std::vector<float> ones(static_cast<size_t>(rig.task.store.values().count()), 1.0f);
  context->upload(ones.data(), rig.task.store.values());
  dtrain::Run(rig.task, rig.trainer, *group, options(1), {}, [] {
    return true;
  }).train();  // stops before the first step
  EXPECT_EQ(rig.average(), ones);
}

TEST_F(RunTest, TellsOfTheLossScaleThatGoesOn) {
  const auto train = [&](uint64_t steps, Observer& observer) {
    DrawnTask task(*context, *group);
    Optimizer optimizer(task.store, {});
    Trainer trainer(task.store, optimizer, {.base = 0.1}, {.loss_scale = 64, .double_loss_scale_after = 3});
    dtrain::Run(task, trainer, *group, saving(steps), {&observer}).train();
  };
  Diary first, second;
  train(5, first);
  EXPECT_TRUE(first.notices.empty());
  train(6, second);
  EXPECT_EQ(second.notices, std::vector<std::string>{
                                "the loss scale continues at 128, after 2 good steps; 0 updates were skipped so far"});
}

TEST_F(RunTest, AnotherCheckpointThanTheNewestMayBeContinued) {
  Rig whole(*context, *group);
  dtrain::Run(whole.task, whole.trainer, *group, saving(6)).train();
  const TempDirectory elsewhere;
  RunOptions with = saving(6);
  with.resume_from = (directory / "checkpoints" / "step-2").string();
  with.train_dir = elsewhere.path().string();
  Rig rig(*context, *group);
  Diary diary;
  dtrain::Run(rig.task, rig.trainer, *group, with, {&diary}).train();
  EXPECT_EQ(diary.entries.front(), "begun 2");
  EXPECT_EQ(rig.values(), whole.values());
}

TEST_F(RunTest, RefusesToTrainNothing) {
  Rig rig(*context, *group);
  const auto expect_refusal = [&](const RunOptions& with, const std::string& part) {
    expect_error([&] { dtrain::Run(rig.task, rig.trainer, *group, with).train(); }, Fault::config, part);
  };
  RunOptions without_steps = options(0), without_batch;
  without_batch.cadence.total_steps = 1;
  expect_refusal(without_steps, "no steps to train; expected Cadence::total_steps of at least 1");
  expect_refusal(without_batch, "a batch of 0 samples; expected RunOptions::batch");
}

// A task that ignores the micro-step would train each on the batch loaded last.
TEST_F(RunTest, RefusesMoreMicroStepsThanTheTaskKeepsApart) {
  Rig rig(*context, *group, nullptr, /*micro_steps=*/2);
  DrawnTask unaware(*context, *group);
  Optimizer optimizer(unaware.store, {});
  Trainer trainer(unaware.store, optimizer, {.base = 0.1}, {.micro_steps = 2});
  expect_error([&] { dtrain::Run(unaware, trainer, *group, options(2)); }, Fault::config,
               "2 micro-steps, and the task keeps the batches of 1 apart");
  EXPECT_EQ(dtrain::Run(rig.task, rig.trainer, *group, options(2)).train(), Outcome::finished);
}

// Earlier use of the trainer, e.g. a warm-up, is not part of the run.
TEST_F(RunTest, AFreshRunCountsItsOwnSteps) {
  Rig rig(*context, *group);
  rig.task.load(0);
  for (int i = 0; i < 2; ++i) rig.trainer.step([&](Tape& tape, int) { return rig.task.forward(tape, 0); });
  Diary diary;
  dtrain::Run(rig.task, rig.trainer, *group, options(3), {&diary}).train();
  EXPECT_EQ(diary.entries, (std::vector<std::string>{"begun 0", "stepped 1", "stepped 2", "stepped 3", "ended 3"}));
}

TEST_F(RunTest, StartsThatFailAgainAndAgainEndForGood) {
  class Broken : public DrawnTask {
   public:
    using DrawnTask::DrawnTask;
    BatchInfo load(int micro_step) override {
      if (++loads_ == 2) throw Error(Fault::data, "record 4 is damaged");
      return DrawnTask::load(micro_step);
    }

   private:
    int loads_ = 0;
  };
  const auto start = [&] {
    Broken task(*context, *group);
    Optimizer optimizer(task.store, {});
    Trainer trainer(task.store, optimizer, {.base = 0.1});
    dtrain::Run(task, trainer, *group, saving(5)).train();
  };
  for (int i = 0; i < 3; ++i) expect_error(start, Fault::data, "record 4 is damaged");
  expect_error(start, Fault::data, "3 starts have trained from step 0 and failed at the same place");
  expect_error(start, Fault::data, "the last ended with: record 4 is damaged");
}

TEST_F(RunTest, ARequestToStopSavesAndEnds) {
  Rig rig(*context, *group);
  Diary diary;
  dtrain::Run run(rig.task, rig.trainer, *group, saving(1000), {&diary}, [&] { return diary.losses.size() >= 3; });
  EXPECT_EQ(run.train(), Outcome::stopped);
  EXPECT_EQ(run.step(), 3u);
  EXPECT_EQ(list_checkpoints((directory / "checkpoints").string()), (std::vector<uint64_t>{2, 3}));
}

TEST_F(RunTest, AnEvaluationThatSufficesEndsTheTraining) {
  Rig rig(*context, *group);
  RunOptions with = options(1000);
  with.cadence.evaluate_after = [](uint64_t step) { return step % 2 == 0; };
  int asked = 0;
  with.enough = [&](const Evaluation&) { return ++asked == 2; };
  Diary diary;
  dtrain::Run run(rig.task, rig.trainer, *group, with, {&diary});
  EXPECT_EQ(run.train(), Outcome::enough);
  EXPECT_EQ(run.step(), 4u);
  EXPECT_TRUE(diary.last.suffices);
}

// Scores on a thread, like an evaluation with a slow metric.
class SlowlyScored : public DrawnTask {
 public:
  using DrawnTask::DrawnTask;
  std::future<Evaluation> evaluate(const EvaluationRequest&) override {
    return std::async(std::launch::async, [this] {
      while (!released) std::this_thread::yield();
      return Evaluation{.values = {{"score", 0.5}}, .examples = 1};
    });
  }
  BatchInfo load(int micro_step) override {
    if (++loads == 6) released = true;
    return DrawnTask::load(micro_step);
  }
  std::atomic<bool> released = false;
  int loads = 0;
};

TEST_F(RunTest, AResultMayComeWhileTrainingGoesOn) {
  SlowlyScored task(*context, *group);
  Optimizer optimizer(task.store, {});
  Trainer trainer(task.store, optimizer, {.base = 0.1});
  Diary diary;
  RunOptions with = options(20);
  with.cadence.evaluate_after = [](uint64_t step) { return step == 2; };
  dtrain::Run(task, trainer, *group, with, {&diary}).train();
  const auto position = [&](const std::string& entry) {
    return std::find(diary.entries.begin(), diary.entries.end(), entry) - diary.entries.begin();
  };
  EXPECT_GT(position("evaluated 2"), position("stepped 5"));
  EXPECT_LT(position("evaluated 2"), position("ended 20"));
  EXPECT_EQ(diary.last.result.value("score"), 0.5);
}

TEST_F(RunTest, ALateResultThatSufficesEndsTheTraining) {
  SlowlyScored task(*context, *group);
  Optimizer optimizer(task.store, {});
  Trainer trainer(task.store, optimizer, {.base = 0.1});
  RunOptions with = options(1'000'000);
  with.cadence.evaluate_after = [](uint64_t step) { return step == 2; };
  with.enough = [](const Evaluation& evaluation) { return evaluation.value("score") > 0.4; };
  EXPECT_EQ(dtrain::Run(task, trainer, *group, with).train(), Outcome::enough);
}

TEST_F(RunTest, RefusesWhatDoesNotFit) {
  Rig rig(*context, *group);
  const auto make = [&](const std::function<void(RunOptions&)>& change) {
    RunOptions with = options(3);
    change(with);
    dtrain::Run(rig.task, rig.trainer, *group, with);
  };
  expect_error([&] { make([](RunOptions& o) { o.cadence.show_every = 0; }); }, Fault::config, "shown every 0");
  expect_error([&] { make([](RunOptions& o) { o.batch = 0; }); }, Fault::config, "a batch of 0");
  expect_error([&] { make([](RunOptions& o) { o.chief = 1; }); }, Fault::config, "the chief is rank 1 of 1");
  dtrain::Run run(rig.task, rig.trainer, *group, options(3));
  run.train();
  expect_error([&] { run.train(); }, Fault::config, "called twice");
}

TEST_F(RunTest, AnotherTasksCheckpointIsRefused) {
  {
    Rig rig(*context, *group);
    dtrain::Run(rig.task, rig.trainer, *group, saving(2)).train();
  }
  Rig rig(*context, *group);
  RunOptions other = saving(4);
  other.batch = 2 * kBatch;
  expect_error([&] { dtrain::Run(rig.task, rig.trainer, *group, other).train(); }, Fault::checkpoint,
               "global batch: checkpoint 4, this run 8");
  RunOptions fresh = saving(4);
  fresh.resume = Resume::never;
  expect_error([&] { dtrain::Run(rig.task, rig.trainer, *group, fresh).train(); }, Fault::config, "start afresh");
}

}  // namespace
}  // namespace dtrain
