// Evaluation history, best checkpoint and early stopping, within a run and across restarts.
#include "libdtrain/run/evaluation_record.h"

#include <cmath>
#include <limits>

#include "tests/distributed/thread_communicator.h"
#include "tests/files.h"
#include "tests/run/drawn_task.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

Evaluation evaluation_of(const std::string& name, double value) { return {.values = {{name, value}}}; }

// Direction from the metric's name unless the options give one.
FollowOptions directed(FollowOptions options) {
  if (options.better == Better::unset)
    options.better = options.metric.ends_with("loss") ? Better::lower : Better::higher;
  return options;
}

EvaluationRecord record_of(const FollowOptions& options, const std::vector<double>& values) {
  EvaluationRecord record(directed(options), "");
  for (size_t i = 0; i < values.size(); ++i) record.add(10 * (i + 1), evaluation_of(options.metric, values[i]), true);
  return record;
}

TEST(EvaluationRecord, TheBestIsTheFirstOfTheHighestOrOfTheLowestLoss) {
  EXPECT_EQ(record_of({.metric = "accuracy"}, {1, 3, 2, 3}).best()->step, 20u);
  EXPECT_EQ(record_of({.metric = "averaged_loss"}, {3, 1, 2, 1}).best()->value, 1);
  EXPECT_EQ(record_of({.metric = "loss"}, {NAN, 5}).best()->step, 20u);
  EXPECT_FALSE(record_of({.metric = "loss"}, {NAN}).best());
  EXPECT_FALSE(record_of({.metric = "loss"}, {}).best());
}

TEST(EvaluationRecord, TheDirectionIsSaidAndNotGuessed) {
  const FollowOptions rmse{.metric = "rmse", .better = Better::lower, .patience = 2};
  EXPECT_EQ(record_of(rmse, {3, 1, 2}).best()->value, 1);
  EXPECT_FALSE(record_of(rmse, {4, 3, 2, 1}).stalls());
  EXPECT_EQ(record_of({.metric = "gloss", .better = Better::higher}, {3, 1, 2}).best()->value, 3);
  expect_error([] { EvaluationRecord({.metric = "rmse"}, ""); }, Fault::config,
               "'rmse' needs a direction: set FollowOptions::better to Better::higher or Better::lower");
}

TEST(EvaluationRecord, PatienceCountsWhatIsNoImprovement) {
  const auto count = [](double min_delta, const std::vector<double>& values) {
    return record_of({.metric = "accuracy", .patience = 2, .min_delta = min_delta}, values).without_improvement();
  };
  EXPECT_EQ(count(0, {}), 0u);
  EXPECT_EQ(count(0, {1}), 0u);
  EXPECT_EQ(count(0, {1, 1, 0}), 2u);
  EXPECT_EQ(count(0, {1, 0, 1.5}), 0u);
  EXPECT_EQ(count(1, {1, 1.5, 2}), 2u) << "each is held against what improved last";
  EXPECT_EQ(count(1, {1, 1.5, 2.5}), 0u);
  EXPECT_EQ(count(0, {1, NAN, NAN}), 2u);
  EXPECT_TRUE(record_of({.metric = "loss", .patience = 2}, {1, 2, 3}).stalls());
  EXPECT_FALSE(record_of({.metric = "loss"}, {1, 2, 3}).stalls());
  EXPECT_EQ(record_of({.metric = "loss", .patience = 2}, {1, 0.5, 2, 3}).describe_stall(),
            "loss has not improved for 2 evaluations; the best was 0.5, after step 20");
}

TEST(EvaluationRecord, IsTakenUpFromItsFileUpToTheStepOfTheCheckpoint) {
  const TempDirectory directory;
  const auto group = make_single_group();
  const std::string folder = directory.path().string(), file = folder + "/evaluations.json";
  const FollowOptions options{.metric = "loss", .better = Better::lower, .patience = 2};
  {
    EvaluationRecord record(options, folder);
    for (const auto& [step, value] : std::map<uint64_t, double>{{10, 3.1}, {20, INFINITY}, {30, 1.0 / 3}, {40, 5}})
      record.add(step, {.values = {{"loss", value}, {"accuracy", -value}}}, true);
    record.add(50, {}, true);
  }
  EvaluationRecord record(options, folder);
  record.restore(*group, 0, 30);
  EXPECT_TRUE(record.holds(10) && record.holds(20) && record.holds(30) && !record.holds(40));
  EXPECT_EQ(record.best()->value, 1.0 / 3);
  EvaluationRecord other({.metric = "accuracy", .better = Better::higher}, folder);
  other.restore(*group, 0, 50);
  EXPECT_EQ(other.best()->step, 30u) << "another metric may be followed later";
  expect_error([&] { other.add(60, evaluation_of("loss", 1), true); }, Fault::config,
               "evaluations have no metric 'accuracy'; they have loss");
  for (const std::string text : {"[{}\n", "{}\n", "{\"evaluations\": [{\"step\": -1, \"values\": {}}]}\n",
                                 "{\"evaluations\": [{\"step\": 1, \"values\": {\"loss\": \"1\"}}]}\n"}) {
    write_file(file, text);
    expect_error([&] { record.restore(*group, 0, 30); }, Fault::checkpoint, file);
  }
}

TEST(EvaluationRecord, ALossOfPowerTakesTheFileAndNotTheRun) {
  const TempDirectory directory;
  const auto group = make_single_group();
  const std::string folder = directory.path().string(), file = folder + "/evaluations.json";
  EvaluationRecord record({.metric = "loss", .better = Better::lower}, folder);
  EXPECT_EQ(record.restore(*group, 0, 30), "");
  record.add(10, evaluation_of("loss", 1), true);
  EXPECT_EQ(record.restore(*group, 0, 30), "");
  EXPECT_TRUE(record.holds(10));
  const std::string whole = read_file(file);
  for (const std::string& text : {std::string(), whole.substr(0, whole.size() - 1), std::string(whole.size(), '\0')}) {
    write_file(file, text);
    EXPECT_NE(record.restore(*group, 0, 30).find("truncated"), std::string::npos);
    EXPECT_FALSE(record.best());
  }
}

// Task with predefined evaluation results per step.
class ScoredTask : public DrawnTask {
 public:
  using DrawnTask::DrawnTask;
  std::future<Evaluation> evaluate(const EvaluationRequest& request) override {
    ++evaluations;
    Evaluation result{.values = {{"score", scores.at(request.step)}}, .examples = 1};
    if (later) {
      if (group_.rank() != 0) result.values.clear();
      return std::async(std::launch::async, [result] { return result; });
    }
    std::promise<Evaluation> promise;
    promise.set_value(result);
    return promise.get_future();
  }
  std::map<uint64_t, double> scores = {{1, 1}, {2, 2}, {3, 5}, {4, 3},  {5, 4}, {6, 4},
                                       {7, 4}, {8, 4}, {9, 6}, {10, 7}, {11, 0}};
  int evaluations = 0;
  bool later = false;
};

class FollowedRun : public RunTest {
 protected:
  // Evaluates after each step, saves after every second.
  RunOptions following(uint64_t steps, uint64_t patience = 0) const {
    RunOptions result = saving(steps);
    result.keep = 2;
    result.cadence.evaluate_after = [](uint64_t) { return true; };
    result.follow = {.metric = "score", .better = Better::higher, .keep_best = true, .patience = patience};
    return result;
  }
  Outcome train(const RunOptions& with, Diary* diary = nullptr, const std::function<void(ScoredTask&)>& set = {},
                Group* ranks = nullptr, Communicator* communicator = nullptr, Context* own = nullptr) {
    ScoredTask task(own ? *own : *context, ranks ? *ranks : *group);
    if (set) set(task);
    Optimizer optimizer(task.store, {});
    Trainer trainer(task.store, optimizer, {.base = 0.1}, {.seed = 5, .communicator = communicator});
    Diary none;
    dtrain::Run run(task, trainer, ranks ? *ranks : *group, with, {diary ? diary : &none});
    return run.train();
  }
  std::string best() const { return fs::read_symlink(directory / "best").string(); }
  std::vector<uint64_t> kept() const {
    std::vector<uint64_t> steps;
    for (uint64_t step = 1; step <= 20; ++step)
      if (fs::exists(directory / "checkpoints" / ("step-" + std::to_string(step)))) steps.push_back(step);
    return steps;
  }

  using Steps = std::vector<uint64_t>;
};

TEST_F(FollowedRun, TheBestCheckpointOutlivesNewerOnes) {
  Diary diary;
  EXPECT_EQ(train(following(8), &diary), Outcome::finished);
  EXPECT_EQ(best(), "checkpoints/step-3");
  EXPECT_EQ(kept(), (Steps{3, 6, 8}));
  EXPECT_TRUE(fs::exists(directory / "best" / "model.safetensors"));
  // Across a restart, until there is a better one.
  EXPECT_EQ(train(following(9)), Outcome::finished);
  EXPECT_EQ(best(), "checkpoints/step-3");
  EXPECT_EQ(train(following(12)), Outcome::finished);
  EXPECT_EQ(best(), "checkpoints/step-10");
  EXPECT_EQ(kept(), (Steps{10, 12}));
}

TEST_F(FollowedRun, ARunThatNoLongerFollowsLeavesTheBestAlone) {
  train(following(4));
  RunOptions plain = saving(12);
  plain.keep = 2;
  train(plain);
  EXPECT_EQ(best(), "checkpoints/step-3");
  EXPECT_EQ(kept(), (Steps{3, 10, 12}));
}

TEST_F(FollowedRun, ResultsThatComeLaterHaveTheirCheckpointsToo) {
  EXPECT_EQ(train(following(8), nullptr, [](ScoredTask& task) { task.later = true; }), Outcome::finished);
  EXPECT_EQ(best(), "checkpoints/step-3");
  EXPECT_TRUE(fs::exists(directory / "best" / "model.safetensors"));
}

TEST_F(FollowedRun, EndsOnceNothingImproves) {
  Diary diary;
  EXPECT_EQ(train(following(20, 3), &diary), Outcome::enough);
  EXPECT_EQ(diary.entries.back(), "ended 6");
  EXPECT_TRUE(diary.last.stalls);
  EXPECT_FALSE(diary.last.resumes);
  EXPECT_EQ(diary.notices, std::vector<std::string>{"training ends early: score has not improved for 3 evaluations; "
                                                    "the best was 5, after step 3"});
  // Restarted: nothing to do without more patience.
  Diary again;
  EXPECT_EQ(train(following(20, 3), &again), Outcome::enough);
  EXPECT_EQ(again.entries, (std::vector<std::string>{"begun 6", "ended 6"}));
  Diary patient;
  EXPECT_EQ(train(following(20, 5), &patient), Outcome::enough);
  EXPECT_EQ(patient.entries.back(), "ended 8");
}

TEST_F(FollowedRun, PatienceIsCountedOverRestarts) {
  EXPECT_EQ(train(following(5, 3)), Outcome::finished);  // no evaluation after the last step
  Diary diary;
  EXPECT_EQ(train(following(20, 3), &diary), Outcome::enough);
  EXPECT_EQ(diary.entries.front(), "begun 5");
  EXPECT_EQ(diary.entries[1], "evaluating 5") << "it is made up for";
  EXPECT_EQ(diary.entries.back(), "ended 6");
}

// State after a kill between the record of an evaluation and the link: the run resumes to the same end.
TEST_F(FollowedRun, AKillBeforeTheLinkIsMadeUpFor) {
  train(following(4));
  fs::remove(directory / "best");
  fs::create_symlink("checkpoints/step-4", directory / "best.new");
  train(following(6));
  EXPECT_EQ(best(), "checkpoints/step-3");
  EXPECT_FALSE(fs::is_symlink(directory / "best.new"));
}

TEST_F(FollowedRun, WhatAnAbandonedFutureCameToIsForgotten) {
  RunOptions with = following(12);
  with.keep = 20;
  train(with);
  EXPECT_EQ(best(), "checkpoints/step-10");
  with.resume_from = (directory / "checkpoints" / "step-4").string();
  with.cadence.total_steps = 5;
  train(with);
  EXPECT_EQ(best(), "checkpoints/step-3");
  // Without a record of the best, no dangling link remains.
  fs::remove(directory / "evaluations.json");
  with.resume_from = (directory / "checkpoints" / "step-2").string();
  with.cadence.total_steps = 3;
  with.cadence.evaluate_after = {};
  train(with);
  EXPECT_FALSE(fs::is_symlink(directory / "best"));
}

TEST_F(FollowedRun, RanksAgreeOnTheEnd) {
  for (const bool later : {false, true}) {
    RunOptions with = following(20, 3);
    with.train_dir = (directory / (later ? "later" : "at once")).string();
    Outcome outcomes[2];
    Diary diaries[2];
    on_ranks(
        2, [] { return make_cpu_context({.threads = 1}); },
        [&](Context& own, ThreadCommunicator& communicator) {
          const int rank = communicator.rank();
          outcomes[rank] = train(
              with, &diaries[rank], [&](ScoredTask& task) { task.later = later; }, &communicator.group(), &communicator,
              &own);
        });
    EXPECT_EQ(outcomes[0], Outcome::enough);
    EXPECT_EQ(outcomes[1], Outcome::enough);
    EXPECT_EQ(diaries[0].entries.back(), diaries[1].entries.back());
    EXPECT_EQ(fs::read_symlink(with.train_dir + "/best"), "checkpoints/step-3");
  }
}

TEST_F(FollowedRun, RefusesWhatMakesNoSense) {
  RunOptions with = following(4);
  with.follow.metric.clear();
  expect_error([&] { train(with); }, Fault::config, "keep_best and patience need the name of a metric");
  with = following(4);
  with.train_dir.clear();
  expect_error([&] { train(with); }, Fault::config, "keep_best needs a train_dir");
  with = following(4);
  with.follow.metric = "accuracy";
  expect_error([&] { train(with); }, Fault::config, "evaluations have no metric 'accuracy'; they have score");
}

}  // namespace
}  // namespace dtrain
