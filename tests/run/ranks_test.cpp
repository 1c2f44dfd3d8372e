// Runs of several ranks, as threads that share one checkpoint.
#include <atomic>
#include <chrono>
#include <thread>

#include "dtrain/run/elastic.h"
#include "libdtrain/run/common_step.h"
#include "tests/distributed/thread_communicator.h"
#include "tests/files.h"
#include "tests/run/drawn_task.h"

namespace dtrain {
namespace {

class RunOfRanks : public RunTest {
 protected:
  static void on_two(const std::function<void(Context&, ThreadCommunicator&)>& body) {
    on_ranks(
        2, [] { return make_cpu_context({.threads = 1}); }, body);
  }
};

TEST_F(RunOfRanks, SeveralRanksShareTheChiefsCheckpointAndStopTogether) {
  std::vector<float> values[2];
  for (const uint64_t stop_after : {3u, 1000u}) {
    on_two([&](Context& own, ThreadCommunicator& communicator) {
      Rig rig(own, communicator.group(), &communicator);
      const int rank = communicator.rank();
      Diary diary;
      RunOptions with = saving(8);
      with.cadence.verify_every = 2;
      with.cadence.evaluate_after = [](uint64_t step) { return step == 6; };
      // Only rank 1 is asked to stop; it has no files.
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

// Two hosts with separate disks.
class RunOfHosts : public RunOfRanks {
 protected:
  // Trains both to step `steps`; `elsewhere` replaces the second host's disk.
  std::vector<Diary> train(uint64_t steps, Resume resume = Resume::newest, const std::string& elsewhere = "") {
    std::vector<Diary> diaries(2);
    on_two([&](Context& own, ThreadCommunicator& communicator) {
      static_cast<ThreadGroup&>(communicator.group()).spread();
      const auto rank = static_cast<size_t>(communicator.rank());
      Rig rig(own, communicator.group(), &communicator);
      RunOptions with = saving(steps);
      with.train_dir = rank == 1 && !elsewhere.empty() ? elsewhere : disk(rank);
      with.local_checkpoints = true;
      with.resume = resume;
      dtrain::Run(rig.task, rig.trainer, communicator.group(), with, {&diaries[rank]}).train();
      values_[rank] = rig.values();
    });
    return diaries;
  }
  std::string disk(size_t host) const { return (directory / ("host-" + std::to_string(host))).string(); }
  std::string checkpoint(size_t host, int step) const {
    return disk(host) + "/checkpoints/step-" + std::to_string(step);
  }

  std::vector<float> values_[2];
};

TEST_F(RunOfHosts, EachHostSavesAndAllGoOnFromTheNewestStepInCommon) {
  for (const Diary& diary : train(8)) EXPECT_EQ(diary.saves, (std::vector<uint64_t>{2, 4, 6, 8}));
  const std::vector<float> whole = values_[0];
  EXPECT_EQ(values_[1], whole);
  // The first host has lost step 8; step 6 of the second is damaged.
  std::filesystem::remove_all(checkpoint(0, 8));
  std::filesystem::resize_file(checkpoint(1, 6) + "/state.safetensors", 40);
  std::filesystem::remove_all(checkpoint(0, 2));
  for (const Diary& diary : train(8)) EXPECT_EQ(diary.entries.front(), "begun 4");
  EXPECT_EQ(values_[0], whole);
  EXPECT_EQ(values_[1], whole);
  for (const size_t host : {0, 1}) EXPECT_TRUE(std::filesystem::exists(checkpoint(host, 8) + "/MANIFEST.json"));
  for (const Diary& diary : train(10)) EXPECT_EQ(diary.entries.front(), "begun 8");
}

TEST_F(RunOfHosts, ADamagedFileIsNoticedByAllBeforeTheyGoOn) {
  train(4);
  std::string text = read_file(checkpoint(1, 4) + "/model.safetensors");
  text.back() ^= 1;
  write_file(checkpoint(1, 4) + "/model.safetensors", text);
  const std::vector<Diary> diaries = train(4);
  for (const Diary& diary : diaries) EXPECT_EQ(diary.entries.front(), "begun 2");
  ASSERT_EQ(diaries[1].notices.size(), 2u);
  EXPECT_NE(diaries[1].notices[0].find("skipped a damaged checkpoint"), std::string::npos);
  EXPECT_NE(diaries[1].notices[1].find("renamed to"), std::string::npos);
}

TEST_F(RunOfHosts, HostsWithoutAStepInCommonAreRefused) {
  train(4);
  const TempDirectory empty;
  expect_error([&] { train(6, Resume::newest, empty.path().string()); }, Fault::checkpoint,
               "rank 0 on host-0: steps 2, 4; rank 1 on host-1: none");
  expect_error([&] { train(6, Resume::never); }, Fault::config, "the run is to start afresh");
}

TEST_F(RunOfHosts, LinksToWhatIsGoneAreRefused) {
  for (const size_t host : {0, 1}) {
    std::filesystem::create_directories(disk(host) + "/checkpoints");
    std::filesystem::create_symlink("/archive/step-4", checkpoint(host, 4));
  }
  expect_error([&] { train(6); }, Fault::checkpoint, "step-4 is a link that cannot be followed");
}

TEST_F(RunOfHosts, OneRankOfEachHostWrites) {
  on_two([](Context&, ThreadCommunicator& communicator) {
    Group& ranks = communicator.group();
    EXPECT_EQ(writes_checkpoints(ranks, 1, /*per_host=*/false), ranks.rank() == 1);
    EXPECT_EQ(writes_checkpoints(ranks, 1, /*per_host=*/true), ranks.rank() == 1) << "the chief on its own host";
    static_cast<ThreadGroup&>(ranks).spread();
    EXPECT_TRUE(writes_checkpoints(ranks, 1, /*per_host=*/true));
    EXPECT_EQ(writes_checkpoints(ranks, 1, /*per_host=*/false), ranks.rank() == 1);
  });
}

// Ranks with different batches or seeds must be refused.
TEST_F(RunOfRanks, RanksThatDifferAreRefused) {
  const auto with = [&](int64_t batch_of_rank_1, uint64_t seed_of_rank_1) {
    on_two([&](Context& own, ThreadCommunicator& communicator) {
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

// A global batch of two ranks becomes two micro-steps of one rank: equal samples, and equal sums up to rounding.
TEST_F(RunOfRanks, OneRankContinuesTheCheckpointOfTwo) {
  std::vector<float> whole;
  for (const bool interrupted : {false, true})
    on_two([&](Context& own, ThreadCommunicator& communicator) {
      Rig rig(own, communicator.group(), &communicator);
      dtrain::Run(rig.task, rig.trainer, communicator.group(), interrupted ? saving(4) : options(8)).train();
      if (!interrupted && communicator.rank() == 0) whole = rig.values();
    });
  RunShape shape;
  shape.batch = kBatch;
  const std::vector<std::string> notices = elastic_resume(shape, {}, saving(8), *group);
  ASSERT_EQ(shape.micro_steps, 2);
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_NE(notices[0].find("1 ranks x batch size 4 x 2 micro-steps"), std::string::npos) << notices[0];
  Rig rig(*context, *group, nullptr, shape.micro_steps);
  Diary diary;
  EXPECT_EQ(dtrain::Run(rig.task, rig.trainer, *group, saving(8), {&diary}).train(), Outcome::finished);
  EXPECT_EQ(diary.entries.front(), "begun 4");
  const std::vector<float> continued = rig.values();
  ASSERT_EQ(continued.size(), whole.size());
  for (size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(continued[i], whole[i], 1e-5) << "value " << i;

  RunShape third;
  third.batch = 3;
  expect_error([&] { elastic_resume(third, {}, saving(8), *group); }, Fault::config, "cannot share it");
}

// The chief scores on a thread until its last checkpoint is saved; other ranks wait up to the evaluation timeout, after
// the save.
TEST_F(RunOfRanks, TheLastCheckpointDoesNotWaitForALateResult) {
  std::atomic<bool> saved = false;
  class LateOnTheChief : public DrawnTask {
   public:
    LateOnTheChief(Context& context, Group& group, std::atomic<bool>& saved)
        : DrawnTask(context, group), saved_(saved) {}
    std::future<Evaluation> evaluate(const EvaluationRequest&) override {
      if (group_.rank() == 0) return std::async(std::launch::async, [this] { return score(); });
      std::promise<Evaluation> none;
      none.set_value({.values = {{"score", 0}}, .examples = 1});
      return none.get_future();
    }

   private:
    Evaluation score() const {
      const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(120);
      while (!saved_ && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
      return {.values = {{"score", saved_ ? 1.0 : 0.0}}, .examples = 1};
    }
    std::atomic<bool>& saved_;
  };
  struct AwaitsTheLast : Observer {
    explicit AwaitsTheLast(std::atomic<bool>& saved) : saved_(saved) {}
    void saved(const Saved& event) override { saved_ = saved_ || event.report.step == 5; }
    std::atomic<bool>& saved_;
  };
  on_two([&](Context& own, ThreadCommunicator& communicator) {
    LateOnTheChief task(own, communicator.group(), saved);
    Optimizer optimizer(task.store, {});
    Trainer trainer(task.store, optimizer, {.base = 0.1}, {.communicator = &communicator});
    RunOptions with = saving(5);
    with.cadence.evaluate_after = [](uint64_t step) { return step == 3; };
    with.enough = [](const Evaluation& evaluation) { return evaluation.value("score") > 0.5; };
    AwaitsTheLast observer(saved);
    dtrain::Run run(task, trainer, communicator.group(), with, {&observer});
    EXPECT_EQ(run.train(), Outcome::enough) << "known to all ranks";
    EXPECT_EQ(run.step(), 5u);
  });
}

// The result may be ready before the ranks ask each other.
TEST_F(RunOfRanks, AResultThatIsTheChiefsAloneEndsTheTrainingOfAll) {
  class ScoresOnTheChief : public DrawnTask {
   public:
    using DrawnTask::DrawnTask;
    std::future<Evaluation> evaluate(const EvaluationRequest&) override {
      std::promise<Evaluation> result;
      result.set_value({.values = {{"score", group_.rank() == 0 ? 1.0 : 0.0}}, .examples = 1});
      return result.get_future();
    }
  };
  on_two([&](Context& own, ThreadCommunicator& communicator) {
    ScoresOnTheChief task(own, communicator.group());
    Optimizer optimizer(task.store, {});
    Trainer trainer(task.store, optimizer, {.base = 0.1}, {.communicator = &communicator});
    RunOptions with = options(5);
    with.cadence.evaluate_after = [](uint64_t step) { return step == 3; };
    with.enough = [](const Evaluation& evaluation) { return evaluation.value("score") > 0.5; };
    dtrain::Run run(task, trainer, communicator.group(), with);
    EXPECT_EQ(run.train(), Outcome::enough);
    EXPECT_EQ(run.step(), 3u);
  });
}

}  // namespace
}  // namespace dtrain
