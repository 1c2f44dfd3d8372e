// The run of a small task: what observers hear, checkpoints, evaluations, stops, and misuse.
#include "libdtrain/run/run.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <thread>

#include "libdtrain/layers.h"
#include "libdtrain/run/evaluation.h"
#include "libdtrain/train/checkpoint_files.h"
#include "tests/distributed/thread_communicator.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

constexpr int64_t kBatch = 4, kInputs = 6, kClasses = 3;

// Samples are drawn from their number; the class is the largest of the first inputs.
class DrawnTask : public Task {
 public:
  DrawnTask(Context& context, Group& group)
      : store(context), hidden(store, "hidden", kInputs, kClasses, Init::normal(0.5f)), group_(group) {
    store.allocate(7);
    images_ = context.empty({kBatch, kInputs});
    labels_ = context.empty({kBatch}, DType::i32);
  }

  void open(uint64_t cursor) override { cursor_ = cursor; }
  BatchInfo load(int) override {
    draw(cursor_ + static_cast<uint64_t>(group_.rank() * kBatch));
    cursor_ += static_cast<uint64_t>(group_.size() * kBatch);
    return {.samples = {cursor_}, .cursor = cursor_};
  }
  Loss forward(Tape& tape, int) override {
    return softmax_cross_entropy(tape, hidden(tape, tape.constant(images_)), labels_);
  }
  std::future<Evaluation> evaluate(const EvaluationRequest& request) override {
    EvaluationLoop loop{.batches = 5, .batch = kBatch * group_.size()};
    uint64_t next = 1'000'000 + static_cast<uint64_t>(group_.rank());
    loop.load = [&]() -> std::optional<int64_t> {
      draw(next += 1000);
      return kBatch;
    };
    loop.forward = [this](Tape& tape) { return forward(tape, 0); };
    return evaluate_batches(store.context(), group_, request, loop);
  }
  void describe(TrainState& state) const override { state.identity["model"] = "drawn"; }

  ParameterStore store;
  Linear hidden;

 protected:
  void draw(uint64_t first) {
    const Array x = random_array({kBatch, kInputs}, first);
    std::vector<int32_t> labels;
    for (int64_t row = 0; row < kBatch; ++row) {
      int32_t best = 0;
      for (int32_t c = 1; c < kClasses; ++c)
        if (x[row * kInputs + c] > x[row * kInputs + best]) best = c;
      labels.push_back(best);
    }
    Context& context = store.context();
    context.copy(to_device(context, x), images_);
    context.upload(labels.data(), labels_);
  }

  Group& group_;
  Tensor images_, labels_;
  uint64_t cursor_ = 0;
};

// Writes down what it hears.
class Diary : public Observer {
 public:
  void begun(const Begun& event) override { add("begun", event.step); }
  void stepped(const Stepped& event) override {
    add("stepped", event.step);
    losses[event.step] = event.loss;
    if (event.shown) shown.push_back(event.step);
  }
  void evaluating(const Evaluating& event) override {
    if (event.batches == 0) add("evaluating", event.step);
  }
  void evaluated(const Evaluated& event) override {
    add("evaluated", event.step);
    last = event;
  }
  void saved(const Saved& event) override { saves.push_back(event.report.step); }
  void noticed(const Noticed& event) override { notices.push_back(event.text); }
  void ended(const Ended& event) override { add("ended", event.step); }

  std::vector<std::string> entries, notices;
  std::vector<uint64_t> shown, saves;
  std::map<uint64_t, double> losses;
  Evaluated last;

 private:
  void add(const char* what, uint64_t step) { entries.push_back(concat(what, " ", step)); }
};

// One rank with a task, an optimizer and a trainer.
struct Rig {
  explicit Rig(Context& context, Group& group, Communicator* communicator = nullptr)
      : task(context, group),
        optimizer(task.store, {.update = {.rule = UpdateRule::momentum}}),
        trainer(task.store, optimizer, {.base = 0.1}, {.seed = 5, .communicator = communicator}) {}
  std::vector<float> values() { return values_of<float>(task.store.context(), task.store.values()); }

  DrawnTask task;
  Optimizer optimizer;
  Trainer trainer;
};

class RunTest : public testing::Test {
 protected:
  RunOptions options(uint64_t steps) const {
    RunOptions result;
    result.cadence.total_steps = steps;
    result.cadence.show_every = 3;
    result.batch = kBatch;
    return result;
  }
  RunOptions saving(uint64_t steps) const {
    RunOptions result = options(steps);
    result.train_dir = directory.path().string();
    result.cadence.save_every_steps = 2;
    return result;
  }

  TempDirectory directory;
  std::unique_ptr<Context> context = make_cpu_context({.threads = 1});
  std::unique_ptr<Group> group = make_single_group();
};

TEST_F(RunTest, ObserversHearWhatHappensInOrder) {
  Rig rig(*context, *group);
  Diary diary;
  RunOptions with = saving(5);
  with.cadence.evaluate_after = {3};
  dtrain::Run run(rig.task, rig.trainer, *group, with, {&diary});
  EXPECT_EQ(run.train(), Outcome::finished);
  EXPECT_EQ(diary.entries, (std::vector<std::string>{"begun 0", "stepped 1", "stepped 2", "stepped 3", "evaluating 3",
                                                     "evaluated 3", "stepped 4", "stepped 5", "ended 5"}));
  EXPECT_EQ(diary.shown, (std::vector<uint64_t>{1, 3}));
  EXPECT_EQ(diary.saves, (std::vector<uint64_t>{2, 4, 5}));
  EXPECT_TRUE(diary.last.resumes);
  EXPECT_EQ(diary.last.result.examples, 20u);
  EXPECT_GT(diary.last.result.value("top_5_accuracy"), 0.99);
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
  with.cadence.evaluate_after = {2, 4, 6};
  int asked = 0;
  with.enough = [&](const Evaluation&) { return ++asked == 2; };
  Diary diary;
  dtrain::Run run(rig.task, rig.trainer, *group, with, {&diary});
  EXPECT_EQ(run.train(), Outcome::enough);
  EXPECT_EQ(run.step(), 4u);
  EXPECT_TRUE(diary.last.suffices);
}

// Scores on a thread, as an evaluation by a slow metric does.
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
  with.cadence.evaluate_after = {2};
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
  with.cadence.evaluate_after = {2};
  with.enough = [](const Evaluation& evaluation) { return evaluation.value("score") > 0.4; };
  EXPECT_EQ(dtrain::Run(task, trainer, *group, with).train(), Outcome::enough);
}

TEST_F(RunTest, SeveralRanksShareTheChiefsCheckpointAndStopTogether) {
  const auto make_context = [] { return make_cpu_context({.threads = 1}); };
  std::vector<float> values[2];
  for (const uint64_t stop_after : {3u, 1000u}) {
    on_ranks(2, make_context, [&](Context& own, ThreadCommunicator& communicator) {
      Rig rig(own, communicator.group(), &communicator);
      const int rank = communicator.rank();
      Diary diary;
      RunOptions with = saving(8);
      with.cadence.verify_every = 2;
      with.cadence.evaluate_after = {6};
      // Rank 1 alone is asked; it has no files of its own.
      dtrain::Run run(rig.task, rig.trainer, communicator.group(), with, {&diary},
                      [&] { return rank == 1 && diary.losses.contains(stop_after - 1); });
      const Outcome outcome = run.train();
      EXPECT_EQ(outcome, stop_after == 3 ? Outcome::stopped : Outcome::finished);
      EXPECT_EQ(run.step(), stop_after == 3 ? 3u : 8u);
      EXPECT_EQ(diary.entries.front(), stop_after == 3 ? "begun 0" : "begun 3");
      EXPECT_EQ(diary.saves.empty(), rank != 0);
      EXPECT_EQ(diary.last.result.examples, stop_after == 3 ? 0u : 40u);
      values[rank] = rig.values();
    });
    EXPECT_EQ(values[0], values[1]);
  }
}

// Ranks that were given different batches or seeds would train, and each something else.
TEST_F(RunTest, RanksThatDifferAreRefused) {
  const auto make_context = [] { return make_cpu_context({.threads = 1}); };
  const auto with = [&](int64_t batch_of_rank_1, uint64_t seed_of_rank_1) {
    on_ranks(2, make_context, [&](Context& own, ThreadCommunicator& communicator) {
      const bool other = communicator.rank() == 1;
      DrawnTask task(own, communicator.group());
      Optimizer optimizer(task.store, {});
      Trainer trainer(task.store, optimizer, {.base = 0.1},
                      {.seed = other ? seed_of_rank_1 : 5, .communicator = &communicator});
      RunOptions run = options(2);
      run.batch = other ? batch_of_rank_1 : kBatch;
      dtrain::Run(task, trainer, communicator.group(), run).train();
    });
  };
  with(kBatch, 5);
  expect_error([&] { with(kBatch + 1, 5); }, Fault::config, "the batch size of a rank is '4'");
  expect_error([&] { with(kBatch, 6); }, Fault::config, "the seed is '5'");
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
