// dtrain-cnn-benchmarks: modes, log, checkpoints, stop requests and kills.
#include <csignal>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "dtrain/io/safetensors.h"
#include "tests/apps/cnn_benchmarks_fixture.h"

namespace dtrain {
namespace {

TEST_F(CnnBenchmarks, PrintsTheLogOfTfCnnBenchmarks) {
  const ProgramResult run = train(synthetic() + Arguments{"--num_batches=4", "--display_every=2",
                                                          "--num_warmup_batches=1", "--variable_update=horovod"});
  ASSERT_EQ(run.code, 0) << run.err;
  const std::string step = R"(\timages/sec: \d+\.\d \+/- \d+\.\d \(jitter = \d+\.\d\)\t\d+\.\d{3}\n)";
  const std::regex log(
      R"(dtrain:      \d+\.\d+\.\d+\n)"
      R"(Model:       resnet20\nDataset:     cifar10 \(synthetic\)\nMode:        training\nSingleSess:  False\n)"
      R"(Batch size:  4 global\n             4 per device\nNum batches: 4\nNum epochs:  0\.00\n)"
      R"(Devices:     \['horovod/cpu:0'\]\nNUMA bind:   False\nData format: NCHW\nOptimizer:   sgd\n)"
      R"(Variables:   horovod\n==========\nGenerating training model\nInitializing graph\n)"
      R"(Computing:   1 thread, [a-z0-9_]+\n)"
      R"(Schedule:    [^\n]+\nUpdate:      [^\n]+\nRunning warm up\nDone warm up\nStep\tImg/sec\ttotal_loss\n)"
      "1" +
      step + "2" + step + "4" + step +
      R"(-{64}\ntotal images/sec: \d+\.\d\d\n-{64}\n)"
      R"(Data wait:   [^\n]+\nStep parts:  forward [^\n]+\nModel FLOPs: [^\n]+\nPeak memory: [^\n]+\n)");
  EXPECT_TRUE(std::regex_match(run.out, log)) << run.out;
}

TEST_F(CnnBenchmarks, CompatibleWithPrintsNoOtherLines) {
  const Arguments line = synthetic() + Arguments{"--num_batches=2", "--num_warmup_batches=1", "--display_every=2"};
  const std::string step = R"(\timages/sec: \d+\.\d \+/- \d+\.\d \(jitter = \d+\.\d\)\t\d+\.\d{3}\n)";
  const std::string rest =
      R"(Data format: NCHW\nOptimizer:   sgd\nVariables:   parameter_server\n==========\nGenerating training model\n)"
      R"(Initializing graph\nRunning warm up\nDone warm up\nStep\tImg/sec\ttotal_loss\n1)" +
      step + "2" + step + R"(-{64}\ntotal images/sec: \d+\.\d\d\n-{64}\n)";
  const std::string head = R"(dtrain:      \d+\.\d+\.\d+\nModel:       resnet20\nDataset:     cifar10 \(synthetic\)\n)";
  const std::string sizes =
      R"(SingleSess:  False\nBatch size:  4 global\n             4 per device\nNum batches: 2\nNum epochs:  0\.00\n)"
      R"(Devices:     \['/cpu:0'\]\n)";
  const ProgramResult master = train(line + Arguments{"--compatible_with=master"});
  ASSERT_EQ(master.code, 0) << master.err;
  EXPECT_TRUE(std::regex_match(
      master.out, std::regex(head + R"(Mode:        training\n)" + sizes + R"(NUMA bind:   False\n)" + rest)))
      << master.out;
  for (const char* line_there : {"note: Computing: ", "note: Schedule: ", "note: Update: ", "note: Peak memory: "})
    EXPECT_TRUE(contains(master.err, line_there)) << master.err;
  const ProgramResult old = train(line + Arguments{"--compatible_with=1.12"});
  ASSERT_EQ(old.code, 0) << old.err;
  EXPECT_TRUE(std::regex_match(old.out, std::regex(head + R"(Mode:        BenchmarkMode\.TRAIN\n)" + sizes + rest)))
      << old.out;
}

TEST_F(CnnBenchmarks, ForwardOnlyShowsAccuraciesAndNoLoss) {
  const ProgramResult run =
      train(synthetic() + Arguments{"--forward_only", "--num_batches=2", "--num_warmup_batches=0"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_TRUE(contains(run.out, "Mode:        forward only\n"));
  EXPECT_TRUE(contains(run.out, "Step\tImg/sec\ttotal_loss\ttop_1_accuracy\ttop_5_accuracy\n")) << run.out;
  EXPECT_TRUE(std::regex_search(run.out, std::regex(R"(\n1\timages/sec: .*\t0\.000\t\d\.\d{3}\t\d\.\d{3}\n)")));
}

TEST_F(CnnBenchmarks, CachingRecordsChangesNothing) {
  ASSERT_EQ(train(real("plain")).code, 0);
  const ProgramResult kept = train(real("kept") + Arguments{"--datasets_use_caching"});
  ASSERT_EQ(kept.code, 0) << kept.err;
  expect_equal_checkpoints("plain", "kept");
  const ProgramResult first = train(real("kept") + Arguments{"--datasets_repeat_cached_sample"});
  EXPECT_EQ(first.code, 5) << "other data, " << first.err;
  EXPECT_EQ(train(real("first") + Arguments{"--datasets_repeat_cached_sample"}).code, 0);
}

TEST_F(CnnBenchmarks, TrainsAndEvaluatesOnOfficialModelsPixels) {
  const ProgramResult run = train(real("run") + Arguments{"--input_preprocessor=official_models_imagenet", "--xla",
                                                          "--num_batches=4", "--eval_during_training_every_n_steps=3"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_TRUE(contains(run.out, "Generating training model\nGenerating evaluation model\nInitializing graph\n"));
  EXPECT_TRUE(contains(run.err, "note: --xla=true has no effect: "));
  const ProgramResult other = train(real("run") + Arguments{"--num_batches=6"});
  EXPECT_EQ(other.code, 5);
  EXPECT_TRUE(contains(other.err, "preprocessing: checkpoint official_models_imagenet, this run tf_cnn")) << other.err;
}

TEST_F(CnnBenchmarks, ResumesBitIdenticalAfterAKill) {
  const ProgramResult unbroken = train(real("unbroken"));
  ASSERT_EQ(unbroken.code, 0) << unbroken.err;
  ASSERT_TRUE(std::filesystem::exists(checkpoint("unbroken", 24)));

  // The save after step 8 waited for the save after step 4.
  const auto killed = paused("killed", "\n7\timages/sec");
  killed->signal(SIGKILL);
  killed->finish();
  const ProgramResult resumed = train(real("killed"));
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_TRUE(
      std::regex_search(resumed.out, std::regex("\nRestored step (4|8|12|16|20) from .*/killed/checkpoints/step-")))
      << resumed.out;
  expect_equal_checkpoints("unbroken", "killed");

  // The run is complete; its files are unchanged.
  const ProgramResult again = train(real("killed"));
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_TRUE(contains(again.err, "step 24 is the end of the run already"));
  EXPECT_FALSE(contains(again.out, "images/sec"));
  EXPECT_FALSE(contains(again.err, "--weights"));
  expect_equal_checkpoints("unbroken", "killed");
  const std::string weights = "--weights=" + checkpoint("unbroken", 24) + "/model.safetensors";
  EXPECT_TRUE(contains(train(real("killed") + Arguments{weights}).err, "--weights has no effect"));
}

// Existing checkpoints are matched by these keys and values.
TEST_F(CnnBenchmarks, RecordsItsIdentityInCheckpoints) {
  ASSERT_EQ(train(synthetic() + Arguments{"--num_batches=1", "--num_warmup_batches=0", "--gradient_accumulation=2",
                                          "--train_dir=" + path("run")})
                .code,
            0);
  const auto state = nlohmann::json::parse(read_file(checkpoint("run", 1) + "/state.json"));
  EXPECT_EQ(state["identity"], (nlohmann::json{{"batch norm", "per rank"},
                                               {"classes", "11"},
                                               {"data set", "synthetic cifar10"},
                                               {"distortions", "none"},
                                               {"global batch", "8"},
                                               {"image size", "16"},
                                               {"label offset", "0"},
                                               {"model", "resnet20"},
                                               {"optimizer", "sgd"},
                                               {"preprocessing", "tf_cnn"},
                                               {"seed", "1234"}}));
  std::vector<std::string> settings;
  for (const auto& [key, text] : state["settings"].items()) settings.push_back(key);
  EXPECT_EQ(settings,
            (std::vector<std::string>{"JPEG decoder", "batch size of a rank", "compute threads", "device",
                                      "instruction set", "label smoothing", "learning rate", "precision", "ranks",
                                      "resize method", "sums over ranks", "version", "weight decay"}));
}

TEST_F(CnnBenchmarks, Bf16ResumesBitIdenticalAfterAKill) {
  const auto flags = [&](const std::string& precision, const std::string& run) {
    return Arguments{"--num_warmup_batches=0", "--num_batches=24", "--init_learning_rate=.001",
                     "--precision=" + precision, "--metrics_file=" + path(run + ".json")};
  };
  const auto in = [&](const std::string& precision, const std::string& run) {
    return real(run) + flags(precision, run);
  };
  const auto first_loss = [&](const std::string& run) {
    std::ifstream metrics(path(run + ".json"));
    std::string line;
    std::getline(metrics, line);
    return nlohmann::json::parse(line).at("loss").get<double>();
  };
  ASSERT_EQ(train(in("fp32", "fp32")).code, 0);
  const ProgramResult bf16 = train(in("bf16", "bf16"));
  ASSERT_EQ(bf16.code, 0) << bf16.err;
  EXPECT_NEAR(first_loss("bf16"), first_loss("fp32"), 0.01);
  EXPECT_NE(first_loss("bf16"), first_loss("fp32"));

  const auto killed = paused("killed", "\n7\timages/sec", flags("bf16", "killed"));
  killed->signal(SIGKILL);
  killed->finish();
  const ProgramResult resumed = train(in("bf16", "killed"));
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  expect_equal_checkpoints("bf16", "killed");

  const ProgramResult other = train(in("fp32", "killed"));
  EXPECT_EQ(other.code, 0) << other.err;

  setenv("DTRAIN_CPU_ISA", "avx2", 1);
  const ProgramResult emulated = train(synthetic() + Arguments{"--num_batches=2", "--precision=bf16"});
  unsetenv("DTRAIN_CPU_ISA");
  EXPECT_EQ(emulated.code, 0) << emulated.err;
  EXPECT_TRUE(contains(emulated.err, "note: bf16 on avx2 saves memory but is slower than f32")) << emulated.err;
}

TEST_F(CnnBenchmarks, StopsOnRequestAfterACheckpoint) {
  ASSERT_EQ(train(real("unbroken")).code, 0);
  const Arguments metrics{"--metrics_file=" + path("metrics")};
  const auto stopped = paused("stopped", "\n1\timages/sec", metrics);
  for (int number : {SIGTERM, SIGCONT}) stopped->signal(number);
  const ProgramResult result = stopped->finish();
  EXPECT_EQ(result.code, 75) << result.err;
  EXPECT_TRUE(contains(result.err, "note: stopped on request at step ")) << result.err;

  ASSERT_EQ(train(real("stopped") + metrics).code, 0);
  expect_equal_checkpoints("unbroken", "stopped");
  std::istringstream lines(read_file(path("metrics")));
  uint64_t step = 2;
  for (std::string line; std::getline(lines, line);) {
    const nlohmann::json row = nlohmann::json::parse(line);
    if (!row.contains("loss")) continue;  // a checkpoint
    EXPECT_EQ(row["step"], ++step);
    for (const char* key : {"loss", "learning_rate", "images_per_sec", "data_wait_ms"})
      EXPECT_TRUE(row[key].is_number()) << key;
  }
  EXPECT_EQ(step, 24u);
}

TEST_F(CnnBenchmarks, EvaluatesCheckpointsAndWhileTraining) {
  write_file(data() + "/classes.txt", "1 cat\n2 dog\n3 cow\n");
  const ProgramResult trained =
      train(real("run") + Arguments{"--eval_during_training_every_n_steps=13", "--eval_batch_size=4",
                                    "--metrics_file=" + path("metrics")});
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_TRUE(contains(trained.out, "Mode:        training + evaluation\n"));
  const std::regex during(
      R"(\nRunning evaluation at global_step 13\n(\d+\t.* examples/sec\n)+Accuracy @ 1 = \d\.\d{4} Accuracy @ 5 = )"
      R"(\d\.\d{4} \[10 examples\]\nResuming training\n)");
  EXPECT_TRUE(std::regex_search(trained.out, during)) << trained.out;
  EXPECT_TRUE(contains(trained.out, "\nDone with training\n"));
  EXPECT_FALSE(contains(trained.out, "total images/sec"));
  const std::regex final_line(R"(\nRunning final evaluation at global_step 24\n[^]*(Accuracy @ 1 = .*)\n)");
  std::smatch final_accuracy;
  ASSERT_TRUE(std::regex_search(trained.out, final_accuracy, final_line)) << trained.out;

  std::map<std::string, std::vector<uint64_t>> steps;  // lines with the key
  std::istringstream metrics(read_file(path("metrics")));
  for (std::string line; std::getline(metrics, line);) {
    const auto row = nlohmann::json::parse(line);
    for (const char* key : {"eval_top_1_accuracy", "checkpoint_bytes"})
      if (row.contains(key)) steps[key].push_back(row.at("step"));
    EXPECT_EQ(row.value("eval_examples", 10), 10) << line;
    EXPECT_GT(row.value("checkpoint_bytes", 1001), 1000) << line;
  }
  EXPECT_EQ(steps["eval_top_1_accuracy"], (std::vector<uint64_t>{13, 24}));
  EXPECT_EQ(steps["checkpoint_bytes"].back(), 24u);

  const Arguments model = {"--model=resnet20", "--data_name=imagenet", "--image_size=16",
                           "--num_classes=4",  "--batch_size=4",       "--data_dir=" + data()};
  for (const std::string& what :
       {"--train_dir=" + path("run"), "--weights=" + checkpoint("run", 24) + "/model.safetensors"}) {
    const ProgramResult evaluated = train(model + Arguments{"--eval", what});
    ASSERT_EQ(evaluated.code, 0) << evaluated.err;
    EXPECT_TRUE(contains(evaluated.out, "Mode:        evaluation\n"));
    EXPECT_TRUE(contains(evaluated.out, final_accuracy[1])) << evaluated.out;
    EXPECT_TRUE(contains(evaluated.out, "total images/sec: "));
  }
  // Moved weights keep their metadata.
  std::filesystem::copy_file(checkpoint("run", 24) + "/model.safetensors", path("moved.safetensors"));
  const std::string moved = "--weights=" + path("moved.safetensors");
  EXPECT_EQ(SafetensorsFile(path("moved.safetensors")).metadata().at("dtrain.class names"),
            R"(["","cat","dog","cow"])");
  const ProgramResult alone = train({"--eval", "--batch_size=4", "--data_dir=" + data(), moved});
  EXPECT_TRUE(contains(alone.out, final_accuracy[1])) << alone.err;
  EXPECT_TRUE(contains(alone.err, "moved.safetensors was trained with --model=resnet20 --num_classes=4")) << alone.err;
  const ProgramResult refused = train(model + Arguments{"--eval", "--preprocessing=torchvision", moved});
  EXPECT_EQ(refused.code, 1);
  EXPECT_TRUE(contains(refused.err, "moved.safetensors was trained with tf_cnn; leave the flag out")) << refused.err;
  const ProgramResult forward = train(
      model + Arguments{"--forward_only", "--num_batches=1", "--num_warmup_batches=0", "--train_dir=" + path("run")});
  EXPECT_TRUE(contains(forward.out, "Successfully loaded model from " + checkpoint("run", 24))) << forward.err;
  EXPECT_EQ(train(model + Arguments{"--eval", "--model=resnet32", "--train_dir=" + path("run")}).code, 1);
  const ProgramResult otherwise =
      train(model + Arguments{"--eval", "--preprocessing=torchvision", "--train_dir=" + path("run")});
  EXPECT_EQ(otherwise.code, 1);
  EXPECT_TRUE(contains(otherwise.err, "step-24/model.safetensors was trained with tf_cnn; leave the flag out"))
      << otherwise.err;
}

TEST_F(CnnBenchmarks, EvaluatesTheNewestCheckpointAgainAndAgain) {
  const Arguments model = synthetic() + Arguments{"--num_batches=2", "--train_dir=" + path("run")};
  Program evaluations(kProgram, model + Arguments{"--eval", "--eval_interval_secs=1", "--display_every=1"});
  ASSERT_TRUE(evaluations.wait_for("\nCheckpoint not found in " + path("run") + "\n"));
  for (const int steps : {2, 3}) {
    ASSERT_EQ(train(model + Arguments{"--num_warmup_batches=" + std::to_string(steps - 2)}).code, 0);
    ASSERT_TRUE(evaluations.wait_for("Successfully loaded model from " + checkpoint("run", steps) + ".\n1\t"));
  }
  evaluations.signal(SIGTERM);
  const ProgramResult result = evaluations.finish();
  EXPECT_EQ(result.code, 75) << result.err;
  EXPECT_TRUE(contains(result.out, "\nAccuracy @ 1 = ")) << result.out;
}

TEST_F(CnnBenchmarks, StopsOnceTheAccuracyIsReached) {
  const ProgramResult run =
      train(real("run") + Arguments{"--eval_during_training_at_specified_steps=3", "--stop_at_top_1_accuracy=0"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_TRUE(contains(run.out, "\nStopping, as eval accuracy at least 0 was reached\nDone with training\n"))
      << run.out;
  EXPECT_TRUE(std::filesystem::exists(checkpoint("run", 3)));
}

TEST_F(CnnBenchmarks, TrainsOnForeignRecords) {
  const std::filesystem::path records = test_data("tfrecord/tf_cnn_benchmarks");
  if (!std::filesystem::exists(records)) GTEST_SKIP() << "SKIPPED: " << records;
  const ProgramResult run =
      train({"--model=resnet20", "--data_name=imagenet", "--data_dir=" + records.string(), "--image_size=16",
             "--num_classes=10", "--batch_size=8", "--num_batches=3", "--num_warmup_batches=0", "--distortions",
             "--print_training_accuracy", "--eval_during_training_at_specified_steps=2", "--num_eval_batches=2"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_TRUE(contains(run.out, "Num epochs:  0.05\n")) << run.out;
  EXPECT_TRUE(contains(run.out, "[16 examples]\n")) << run.out;
}

TEST_F(CnnBenchmarks, WeightEmaIsEvaluatedSavedAndLoaded) {
  Arguments arguments = real("run");
  arguments.insert(arguments.end(), {"--num_batches=10", "--weight_ema=0.9", "--num_eval_batches=2",
                                     "--eval_during_training_at_specified_steps=6"});
  const ProgramResult run = train(arguments);
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_TRUE(contains(run.out, ", parameters averaged with decay 0.9 after a warm-up\n")) << run.out;
  EXPECT_TRUE(contains(run.out, "\nAveraged parameters: Accuracy @ 1 = ")) << run.out;
  const ProgramResult loaded = train({"--model=resnet20", "--data_name=imagenet", "--image_size=16", "--num_classes=4",
                                      "--batch_size=4", "--data_dir=" + data(), "--eval", "--num_eval_batches=2",
                                      "--weights=" + checkpoint("run", 12) + "/averaged.safetensors"});
  ASSERT_EQ(loaded.code, 0) << loaded.err;
  const size_t averaged = run.out.rfind("Averaged parameters: ") + 21;
  const std::string accuracies = run.out.substr(averaged, run.out.find('\n', averaged) - averaged);
  EXPECT_TRUE(contains(loaded.out, accuracies)) << loaded.out << "expected " << accuracies;
}

// Known-answer test: overfits tf_cnn_benchmarks' own test data without an error.
TEST_F(CnnBenchmarks, OverfitsForeignRecords) {
  if (sanitized()) GTEST_SKIP() << "SKIPPED: a training of 200 steps, which sanitizers slow down tenfold";
  const std::filesystem::path records = test_data("tfrecord/tf_cnn_benchmarks");
  if (!std::filesystem::exists(records)) GTEST_SKIP() << "SKIPPED: " << records;
  const ProgramResult run =
      train({"--model=resnet20", "--data_name=imagenet", "--data_dir=" + records.string(), "--image_size=16",
             "--num_classes=10", "--batch_size=32", "--num_batches=200", "--num_warmup_batches=0",
             "--optimizer=momentum", "--init_learning_rate=0.05", "--lr_schedule=cosine", "--num_eval_epochs=1",
             "--eval_during_training_at_specified_steps=200"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_TRUE(contains(run.out, "\nAccuracy @ 1 = 1.0000 Accuracy @ 5 = 1.0000 [128 examples]\n")) << run.out;
}

}  // namespace
}  // namespace dtrain
