// Failures of dtrain-cnn-benchmarks: one clear line, the documented exit code, and no loss of saved data.
#include <sys/wait.h>

#include <csignal>
#include <limits>
#include <regex>
#include <tuple>

#include "apps/cli/vision.h"
#include "dtrain/train/weights.h"
#include "tests/apps/cnn_benchmarks_fixture.h"

namespace dtrain {
namespace {

TEST_F(CnnBenchmarks, UsageErrorsExitWithOne) {
  using Case = std::pair<std::string, std::string>;
  for (const auto& [argument, part] :
       {Case{"--modle=resnet50", "did you mean --model?"}, Case{"resnet50", "unexpected argument 'resnet50'"},
        Case{"--trt_mode=FP16", "not supported"}, Case{"--eval", "--train_dir"},
        Case{"--data_dir=" + path("none"), path("none")}}) {
    const ProgramResult run = train({argument});
    EXPECT_NE(run.code, 0) << argument;
    EXPECT_TRUE(contains(run.err, "error: ")) << run.err;
    EXPECT_TRUE(contains(run.err, part)) << run.err;
  }
  EXPECT_EQ(train({"--modle=resnet50"}).code, 1);
  EXPECT_EQ(train(synthetic() + Arguments{"--weights=" + path("none")}).code, 5);
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

TEST_F(CnnBenchmarks, DamagedCheckpointsAreSkippedOrExitWithFive) {
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
  const auto run = paused("run", "\n7\timages/sec");
  // It wakes up with both signals pending, so that the second cannot be late.
  for (int number : {SIGTERM, SIGINT, SIGCONT}) run->signal(number);
  const int code = run->finish().code;
  EXPECT_TRUE(code == 128 + SIGTERM || code == 128 + SIGINT) << code;
  const ProgramResult resumed = train(real("run"));
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_TRUE(contains(resumed.out, "\nRestored step ")) << resumed.out;
  expect_equal_checkpoints("unbroken", "run");
}

// Occurrences of `part` in `text`.
size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST_F(CnnBenchmarks, FullDiskForTheLogOnlyPrintsANotice) {
  ASSERT_EQ(train(real("unbroken")).code, 0);
  std::string command = "CUDA_VISIBLE_DEVICES= OMP_NUM_THREADS=1 '" + (bin_dir() / kProgram).string() + "'";
  for (const std::string& argument : real("run")) command += " '" + argument + "'";
  const int status = std::system((command + " > /dev/full 2> '" + path("err") + "'").c_str());
  const std::string said = read_file(path("err"));
  EXPECT_EQ(WEXITSTATUS(status), 0) << said;
  EXPECT_EQ(count_of(said, "note: the log: No space left on device; the run goes on"), 1u) << said;
  expect_equal_checkpoints("unbroken", "run");
}

TEST_F(CnnBenchmarks, FullDiskForTheMetricsOnlyPrintsANotice) {
  ASSERT_EQ(train(real("unbroken")).code, 0);
  std::filesystem::create_symlink("/dev/full", path("full"));
  const auto run = paused("run", "\n1\timages/sec", {"--metrics_file=" + path("metrics")});
  std::filesystem::rename(path("full"), path("metrics"));
  run->signal(SIGCONT);
  const ProgramResult result = run->finish();
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(count_of(result.err, "note: metrics file " + path("metrics")), 1u) << result.err;
  EXPECT_TRUE(contains(result.err, "No space left on device; the run goes on without it\n")) << result.err;
  expect_equal_checkpoints("unbroken", "run");
}

TEST_F(CnnBenchmarks, EvaluationWithoutACheckpointExitsWithFive) {
  const ProgramResult run = train(synthetic() + Arguments{"--eval", "--train_dir=" + path("none")});
  EXPECT_EQ(run.code, 5);
  EXPECT_TRUE(contains(run.err, "Checkpoint not found in " + path("none"))) << run.err;
}

// Missing tensors keep their initial values and additional tensors are ignored; both are named.
TEST_F(CnnBenchmarks, WeightsOfASmallerModelAreRemarked) {
  const auto context = make_cpu_context({.threads = 1});
  ParameterStore store(*context);
  models::make_classifier(store, cli::find_model("resnet20", "cifar10"), {.classes = 11, .image_size = 16});
  store.allocate(1);
  save_weights(store, path("smaller"));
  const ProgramResult run = train({"--model=resnet32", "--data_name=cifar10", "--image_size=16", "--batch_size=2",
                                   "--num_batches=1", "--num_warmup_batches=0", "--weights=" + path("smaller")});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_TRUE(
      std::regex_search(run.err, std::regex("smaller: \\d+ tensors loaded, 60 missing, 0 unexpected.*; missing: "
                                            "layer1\\.3\\.conv1\\.weight, ")))
      << run.err;
}

TEST_F(CnnBenchmarks, NonFiniteEvaluationExitsWithThree) {
  const auto context = make_cpu_context({.threads = 1});
  ParameterStore store(*context);
  models::make_classifier(store, cli::find_model("resnet20", "imagenet"), {.classes = 4, .image_size = 16});
  store.allocate(1);
  const Parameter& first = store.parameters().front();
  const auto evaluate_with = [&](float value) {
    const std::vector<float> values(static_cast<size_t>(first.shape.count()), value);
    context->upload(values.data(), first.value);
    save_weights(store, path("weights"));
    return train({"--model=resnet20", "--data_name=imagenet", "--image_size=16", "--num_classes=4", "--batch_size=4",
                  "--data_dir=" + data(), "--eval", "--weights=" + path("weights"), "--device=cpu"});
  };
  const ProgramResult sound = evaluate_with(0.1f);
  EXPECT_EQ(sound.code, 0) << sound.err;
  const ProgramResult nan = evaluate_with(std::numeric_limits<float>::quiet_NaN());
  EXPECT_EQ(nan.code, 3);
  EXPECT_TRUE(contains(nan.err, "weights: element 0 of " + first.name + " is not finite")) << nan.err;
  const ProgramResult overflow = evaluate_with(3e38f);
  EXPECT_EQ(overflow.code, 3);
  EXPECT_TRUE(contains(overflow.err, "error: evaluation: the loss is not finite: ")) << overflow.err;
}

TEST_F(CnnBenchmarks, EmptyDataExitsWithTwo) {
  for (const char* kind : {"empty", "damaged"}) {
    std::filesystem::create_directory(path(kind));
    for (const char* name : {"/train-00000-of-00001", "/validation-00000-of-00001"})
      write_file(path(kind) + name, kind == std::string("empty") ? "" : "neither a header nor a record");
  }
  const Arguments run = {"--model=lenet", "--data_name=imagenet", "--image_size=28", "--device=cpu", "--batch_size=4"};
  for (const Arguments& mode : {Arguments{}, Arguments{"--eval", "--train_dir=" + path("none")},
                                Arguments{"--on_bad_record=skip"}, Arguments{"--forward_only"}}) {
    const ProgramResult empty = train(run + mode + Arguments{"--data_dir=" + path("empty")});
    EXPECT_EQ(empty.code, 2) << empty.err;
    const char* split = mode == Arguments{"--eval", "--train_dir=" + path("none")} ? "validation" : "train";
    EXPECT_TRUE(contains(empty.err, concat("error: ", path("empty"), ": no record in the files ", split, "-*")))
        << empty.err;
    const ProgramResult damaged = train(run + mode + Arguments{"--data_dir=" + path("damaged")});
    EXPECT_EQ(damaged.code, 2) << damaged.err;
    EXPECT_TRUE(contains(damaged.err, concat(split, "-00000-of-00001: record 0 at byte 0: not a TFRecord")))
        << damaged.err;
  }
  EXPECT_EQ(run_program("dtrain-data", {"throughput", path("empty")}).code, 2);
}

TEST_F(CnnBenchmarks, DivergenceExitsWithThree) {
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
