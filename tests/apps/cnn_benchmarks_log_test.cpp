// Exact text of the log.
#include "apps/cnn_benchmarks/log_header.h"
#include "apps/observers/tf_cnn_log.h"

#include <sstream>

#include "tests/testing.h"

namespace dtrain::cnn_benchmarks {
namespace {

Flags horovod_flags() {
  Flags flags;
  flags.distribution.variable_update = "horovod";
  flags.distribution.horovod_device = "cpu";
  return flags;
}

Settings settings_with(const Flags& flags) {
  Settings settings{.flags = flags};
  settings.dataset = "imagenet";
  settings.info.name = "resnet50";
  settings.shape.batch = 64;
  return settings;
}

TEST(Log, HeaderOfTfCnnBenchmarks) {
  std::ostringstream out, notices;
  TrainingSchedule schedule;
  schedule.num_batches = 100;
  schedule.num_epochs = 0.16;
  cli::Log log(out, notices);
  print_header(log, settings_with(horovod_flags()), schedule, "1.2.3");
  EXPECT_EQ(out.str(),
            "dtrain:      1.2.3\n"
            "Model:       resnet50\n"
            "Dataset:     imagenet (synthetic)\n"
            "Mode:        training\n"
            "SingleSess:  False\n"
            "Batch size:  64 global\n"
            "             64 per device\n"
            "Num batches: 100\n"
            "Num epochs:  0.16\n"
            "Devices:     ['horovod/cpu:0']\n"
            "NUMA bind:   False\n"
            "Data format: NCHW\n"
            "Optimizer:   sgd\n"
            "Variables:   horovod\n"
            "Horovod on:  cpu\n"
            "==========\n");
  EXPECT_EQ(notices.str(), "");
}

TEST(Log, HeaderOfOtherModes) {
  Flags flags = horovod_flags();
  flags.distribution.variable_update = "replicated";
  flags.input.data_dir = "/data";
  Settings settings = settings_with(flags);
  settings.shape.micro_steps = 4;
  settings.info.name = "lenet";
  settings.eval_batch = 50;
  std::ostringstream out;
  cli::Log log(out, out);
  print_header(log, settings, TrainingSchedule(), "1.2.3");
  EXPECT_NE(out.str().find("Model:       lenet5\nDataset:     imagenet\nMode:        training\n"), std::string::npos);
  EXPECT_NE(out.str().find("Batch size:  256 global\n             64 per device\n"), std::string::npos);
  EXPECT_NE(out.str().find("Devices:     ['/cpu:0']\n"), std::string::npos);
  EXPECT_NE(out.str().find("Variables:   replicated\nAllReduce:   None\n==========\n"), std::string::npos);

  out.str("");
  settings.mode = RunMode::evaluation;
  print_header(log, settings, TrainingSchedule(), "1.2.3");
  EXPECT_NE(out.str().find("Mode:        evaluation\nSingleSess:  False\nBatch size:  50 global\n"), std::string::npos);
}

TEST(Log, HeaderOfOtherFlags) {
  Flags flags;
  flags.distribution.variable_update = "distributed_all_reduce";
  flags.tf.batch_group_size = 3;
  flags.tf.rewriter_config = "off";
  std::ostringstream out;
  cli::Log log(out, out);
  const auto header = [&](RunMode mode) {
    Settings settings = settings_with(flags);
    settings.mode = mode;
    out.str("");
    print_header(log, settings, TrainingSchedule(), "1.2.3");
    return out.str();
  };
  EXPECT_TRUE(contains(header(RunMode::forward_only), "Mode:        forward only\nSingleSess:  True\n"));
  EXPECT_TRUE(contains(out.str(), "             64 per device\n             3 batches per prepocessing group\n"));
  EXPECT_TRUE(contains(out.str(), "NUMA bind:   False\nData format: NCHW\nRewriterConfig: off\nOptimizer:   sgd\n"));
  flags.tf.compatible_with = "1.12";
  EXPECT_TRUE(contains(header(RunMode::training), "Mode:        BenchmarkMode.TRAIN\n"));
  EXPECT_TRUE(contains(out.str(), "Devices:     ['/cpu:0']\nData format: NCHW\n"));
  EXPECT_TRUE(contains(header(RunMode::training_and_evaluation), "Mode:        BenchmarkMode.TRAIN_AND_EVAL\n"));
  EXPECT_TRUE(contains(header(RunMode::evaluation), "Mode:        BenchmarkMode.EVAL\n"));
  EXPECT_TRUE(contains(header(RunMode::forward_only), "Mode:        BenchmarkMode.FORWARD_ONLY\n"));
}

// A communicator with a single rank.
struct Alone {
  std::unique_ptr<Context> context = make_cpu_context({.threads = 1});
  std::unique_ptr<Group> group = make_single_group();
  std::unique_ptr<Communicator> communicator = make_communicator(*group, *context);
};

Stepped step_of(uint64_t step, double seconds, double loss) {
  Stepped event{.step = step, .shown = true, .loss = loss, .l2_loss = 0.25, .seconds = seconds};
  event.metrics = {{"top_1_accuracy", 0.5}, {"top_5_accuracy", 0.9994}};
  return event;
}

TEST(Log, StepLines) {
  Alone alone;
  std::ostringstream out, notices;
  cli::Log lines(out, notices);
  observers::TfCnnLog log(lines, {.speed = {.samples_per_step = 32, .warmup_steps = 2}}, *alone.context,
                          *alone.communicator);
  log.begun({.step = 1, .restored_from = "run/checkpoints/step-1", .schedule = "0.1", .update = "SGD"});
  for (const auto& [step, seconds] : {std::pair{2, 9.0}, {3, 0.5}, {4, 0.25}}) {
    log.stepping(step);
    log.stepped(step_of(step, seconds, 8.02951));
  }
  log.noticed({"slow disk"});
  // Speeds 64 and 128: their mean time gives 85.3, their deviation is 32, the median of |s - 96| is 32.
  EXPECT_EQ(out.str(),
            "Restored step 1 from run/checkpoints/step-1\n"
            "Schedule:    0.1\n"
            "Update:      SGD\n"
            "Running warm up\n"
            "Done warm up\n"
            "Step\tImg/sec\ttotal_loss\n"
            "1\timages/sec: 64.0 +/- 0.0 (jitter = 0.0)\t8.280\n"
            "2\timages/sec: 85.3 +/- 22.6 (jitter = 47.4)\t8.280\n");
  EXPECT_EQ(notices.str(), "note: slow disk\n");
}

TEST(Log, AccuraciesAndTheLossWithoutItsL2Term) {
  Alone alone;
  std::ostringstream out;
  cli::Log lines(out, out);
  observers::TfCnnLog log(lines, {.base_loss = true, .accuracies = true}, *alone.context, *alone.communicator);
  log.begun({});
  log.stepping(1);
  log.stepped(step_of(1, 0.5, 0));
  EXPECT_EQ(out.str(),
            "Running warm up\n"
            "Done warm up\n"
            "Step\tImg/sec\tbase_loss\ttop_1_accuracy\ttop_5_accuracy\n"
            "1\timages/sec: 2.0 +/- 0.0 (jitter = 0.0)\t0.000\t0.500\t0.999\n");
}

TEST(Log, EvaluationsOfATraining) {
  Alone alone;
  std::ostringstream out;
  cli::Log lines(out, out);
  observers::TfCnnLog log(lines, {.ends_with_evaluation = true, .stop_at_top_1 = 0.8}, *alone.context,
                          *alone.communicator);
  const auto evaluated = [&](double top_1, bool resumes) {
    Evaluated event{.step = 40, .resumes = resumes};
    event.result = {.values = {{"top_1_accuracy", top_1}, {"top_5_accuracy", 1}}, .examples = 128, .seconds = 0.5};
    log.evaluating({.step = 40});
    log.evaluated(event);
  };
  evaluated(0.75, true);
  evaluated(0.8, false);
  log.ended({Outcome::enough, 40});
  evaluated(0.5, false);
  const std::string text = out.str();
  EXPECT_EQ(text.substr(0, text.find("Data wait:")),
            "Running evaluation at global_step 40\n"
            "Accuracy @ 1 = 0.7500 Accuracy @ 5 = 1.0000 [128 examples]\n"
            "Resuming training\n"
            "Running evaluation at global_step 40\n"
            "Accuracy @ 1 = 0.8000 Accuracy @ 5 = 1.0000 [128 examples]\n"
            "Stopping, as eval accuracy at least 0.8 was reached\n"
            "Done with training\n");
  EXPECT_NE(text.find("MiB of it tensors\n"
                      "Running final evaluation at global_step 40\n"
                      "Accuracy @ 1 = 0.5000 Accuracy @ 5 = 1.0000 [128 examples]\n"),
            std::string::npos)
      << text;
}

TEST(Log, AnEvaluationAlone) {
  Alone alone;
  std::ostringstream out;
  cli::Log lines(out, out);
  observers::TfCnnLog log(lines, {.trains = false}, *alone.context, *alone.communicator);
  log.evaluating({});
  Evaluated event;
  event.result = {.values = {{"top_1_accuracy", 0.75}, {"top_5_accuracy", 1}}, .examples = 128, .seconds = 0.02};
  log.evaluated(event);
  EXPECT_EQ(out.str(),
            "Accuracy @ 1 = 0.7500 Accuracy @ 5 = 1.0000 [128 examples]\n"
            "----------------------------------------------------------------\n"
            "total images/sec: 6400.00\n"
            "----------------------------------------------------------------\n");
}

}  // namespace
}  // namespace dtrain::cnn_benchmarks
