// What goes wrong in a run of the program: one clear line, the documented code, and nothing lost that was saved.
#include <sys/wait.h>

#include <csignal>
#include <regex>
#include <tuple>

#include "tests/apps/cnn_benchmarks_fixture.h"

namespace dtrain {
namespace {

TEST_F(CnnBenchmarks, UsageErrorsEndWithOne) {
  for (const auto& [argument, part] :
       {std::pair{"--modle=resnet50", "did you mean --model?"}, std::pair{"resnet50", "unexpected argument 'resnet50'"},
        std::pair{"--xla", "not served"}, std::pair{"--eval", "--train_dir"},
        std::pair{"--data_dir=/nonexistent", "/nonexistent"}}) {
    const ProgramResult run = train({argument});
    EXPECT_NE(run.code, 0) << argument;
    EXPECT_TRUE(contains(run.err, "error: ")) << run.err;
    EXPECT_TRUE(contains(run.err, part)) << run.err;
  }
  EXPECT_EQ(train({"--modle=resnet50"}).code, 1);
  EXPECT_EQ(train(synthetic() + Arguments{"--weights=/nonexistent"}).code, 5);
  const ProgramResult help = train({"--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_TRUE(contains(help.out, "--weight_decay (float, default 4e-05)"));
}

TEST_F(CnnBenchmarks, ASecondWriterIsRefusedWithThePidOfTheFirst) {
  const Arguments endless =
      synthetic() + Arguments{"--num_batches=1000000", "--train_dir=" + path("run"), "--num_warmup_batches=0"};
  Program first(kProgram, endless);
  ASSERT_TRUE(first.wait_for("\n1\timages/sec"));
  const ProgramResult second = train(endless);
  EXPECT_EQ(second.code, 1);
  EXPECT_TRUE(contains(second.err, std::to_string(first.pid()))) << second.err;
}

TEST_F(CnnBenchmarks, AChangedRunIsRefusedWithTheDifference) {
  ASSERT_EQ(train(real("run")).code, 0);
  for (const auto& [flag, code, difference] :
       {std::tuple{"--model=resnet32", 5, "model: checkpoint resnet20, this run resnet32"},
        std::tuple{"--num_classes=5", 5, "classes: checkpoint 4, this run 5"},
        std::tuple{"--batch_size=5", 1,
                   "trained with a global batch of 4; 1 rank with a batch size of 5 cannot share it"}}) {
    const ProgramResult changed = train(real("run") + Arguments{flag});
    EXPECT_EQ(changed.code, code) << flag;
    EXPECT_TRUE(contains(changed.err, difference)) << changed.err;
  }
  const ProgramResult never = train(real("run") + Arguments{"--resume=never"});
  EXPECT_EQ(never.code, 1);
  EXPECT_TRUE(contains(never.err, "step-24")) << never.err;
  const ProgramResult longer = train(real("run") + Arguments{"--num_batches=23", "--init_learning_rate=0.05"});
  EXPECT_EQ(longer.code, 0) << longer.err;
  EXPECT_TRUE(contains(longer.err, "learning rate")) << longer.err;
}

TEST_F(CnnBenchmarks, DamagedCheckpointsArePassedOverOrEndWithFive) {
  ASSERT_EQ(train(real("run")).code, 0);
  write_file(checkpoint("run", 24) + "/state.safetensors", "cut");
  const ProgramResult earlier = train(real("run"));
  EXPECT_EQ(earlier.code, 0) << earlier.err;
  EXPECT_TRUE(contains(earlier.err, "step-24/state.safetensors: damaged")) << earlier.err;
  EXPECT_TRUE(contains(earlier.out, "\nRestored step 20 from ")) << earlier.out;
  for (const auto& step : std::filesystem::directory_iterator(path("run") + "/checkpoints"))
    write_file(step.path() / "model.safetensors", "cut");
  const ProgramResult none = train(real("run"));
  EXPECT_EQ(none.code, 5);
  EXPECT_TRUE(contains(none.err, "error: no usable checkpoint in " + path("run"))) << none.err;
}

TEST_F(CnnBenchmarks, ASecondSignalEndsItAtOnceAndCostsNoCheckpoint) {
  ASSERT_EQ(train(real("unbroken")).code, 0);
  Program run(kProgram, real("run"));
  ASSERT_TRUE(run.wait_for("\n7\timages/sec"));
  // It wakes up with both pending, so that the second cannot come too late.
  for (int number : {SIGSTOP, SIGTERM, SIGINT, SIGCONT}) run.signal(number);
  const int code = run.finish().code;
  EXPECT_TRUE(code == 128 + SIGTERM || code == 128 + SIGINT) << code;
  const ProgramResult resumed = train(real("run"));
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_TRUE(contains(resumed.out, "\nRestored step ")) << resumed.out;
  expect_equal_checkpoints("unbroken", "run");
}

// How often `part` stands in `text`.
size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST_F(CnnBenchmarks, AFullDiskUnderTheLogCostsANoticeAndNoResult) {
  ASSERT_EQ(train(real("unbroken")).code, 0);
  std::string command = "CUDA_VISIBLE_DEVICES= OMP_NUM_THREADS=1 '" + (bin_dir() / kProgram).string() + "'";
  for (const std::string& argument : real("run")) command += " '" + argument + "'";
  const int status = std::system((command + " > /dev/full 2> '" + path("err") + "'").c_str());
  const std::string said = read_file(path("err"));
  EXPECT_EQ(WEXITSTATUS(status), 0) << said;
  EXPECT_EQ(count_of(said, "note: the log: No space left on device; the run goes on"), 1u) << said;
  expect_equal_checkpoints("unbroken", "run");
}

TEST_F(CnnBenchmarks, AFullDiskUnderTheMetricsCostsANoticeAndNoResult) {
  ASSERT_EQ(train(real("unbroken")).code, 0);
  std::filesystem::create_symlink("/dev/full", path("full"));
  Program run(kProgram, real("run") + Arguments{"--metrics_file=" + path("metrics")});
  ASSERT_TRUE(run.wait_for("\n1\timages/sec"));
  run.signal(SIGSTOP);
  std::filesystem::rename(path("full"), path("metrics"));
  run.signal(SIGCONT);
  const ProgramResult result = run.finish();
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(count_of(result.err, "note: metrics file " + path("metrics")), 1u) << result.err;
  EXPECT_TRUE(contains(result.err, "No space left on device; the run goes on without it\n")) << result.err;
  expect_equal_checkpoints("unbroken", "run");
}

TEST_F(CnnBenchmarks, EvaluationWithoutACheckpointEndsWithFive) {
  const ProgramResult run = train(synthetic() + Arguments{"--eval", "--train_dir=" + path("none")});
  EXPECT_EQ(run.code, 5);
  EXPECT_TRUE(contains(run.err, "Checkpoint not found in " + path("none"))) << run.err;
}

TEST_F(CnnBenchmarks, DivergenceEndsWithThree) {
  const ProgramResult run = train(real("run") + Arguments{"--init_learning_rate=1e30"});
  EXPECT_EQ(run.code, 3) << run.err;
  const std::regex report(R"(error: step \d+: not finite: loss \S+, learning rate 1e\+30, worst layer \S+, )"
                          R"(samples \d+ \d+ \d+ \d+;)");
  EXPECT_TRUE(std::regex_search(run.err, report)) << run.err;
}

TEST_F(CnnBenchmarks, BadRecordsFailOrAreSkipped) {
  std::filesystem::copy(data(), path("data"));
  const std::string shard = path("data/train-00001-of-00002");
  std::string bytes = read_file(shard);
  bytes[300] = static_cast<char>(bytes[300] ^ 1);
  write_file(shard, bytes);
  const Arguments arguments = real("run") + Arguments{"--data_dir=" + path("data")};
  const ProgramResult failed = train(arguments);
  EXPECT_EQ(failed.code, 2);
  EXPECT_TRUE(contains(failed.err, "train-00001-of-00002")) << failed.err;
  const ProgramResult skipped = train(arguments + Arguments{"--on_bad_record=skip", "--resume=auto"});
  EXPECT_EQ(skipped.code, 0) << skipped.err;
  EXPECT_TRUE(contains(skipped.err, "1 bad record")) << skipped.err;
}

}  // namespace
}  // namespace dtrain
