// --benchmark_log_dir and --ml_perf_compliance_logging: log formats of other programs.
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "apps/observers/benchmark_log.h"
#include "apps/observers/mlperf_line.h"
#include "apps/observers/mlperf_log.h"
#include "tests/apps/cnn_benchmarks_fixture.h"

namespace dtrain {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(MlperfLine, HasTheFormOfTheCompliancePackage) {
  const auto here = std::source_location::current();
  const std::string site = " (apps/benchmark_logs_test.cpp:" + std::to_string(here.line()) + ") ";
  const auto line = [&](const nlohmann::ordered_json& value) {
    return observers::mlperf_line("resnet", 1537375353.25, here, "tag", value);
  };
  const std::string front = ":::MLPv0.5.0 resnet 1537375353.250000000" + site + "tag";
  EXPECT_EQ(line(nullptr), front);
  EXPECT_EQ(line(false), front + ": false");
  EXPECT_EQ(line({{"epoch", 4}, {"values", {0.5, 1}}, {"none", nlohmann::ordered_json::array()}}),
            front + ": {\"epoch\": 4, \"values\": [0.5, 1], \"none\": []}");
}

class BenchmarkLogs : public CnnBenchmarks {};

TEST_F(BenchmarkLogs, DescribeTheRunAndItsMetrics) {
  const auto run = [&](const Arguments& more) {
    const ProgramResult result = train(real("run") +
                                       Arguments{"--num_batches=2", "--num_warmup_batches=1",
                                                 "--benchmark_test_id=small", "--benchmark_log_dir=" + path("a/log")} +
                                       more);
    ASSERT_EQ(result.code, 0) << result.err;
  };
  run({"--eval_during_training_every_n_steps=2"});
  const nlohmann::json about = nlohmann::json::parse(read_file(path("a/log/benchmark_run.log")));
  EXPECT_EQ(about["model_name"], "resnet20");
  EXPECT_EQ(about["dataset"], nlohmann::json::parse(R"({"name": "imagenet"})"));
  EXPECT_EQ(about["test_id"], "small");
  EXPECT_GE(about["machine_config"]["cpu_info"]["num_cores"], 1);
  EXPECT_EQ(about["machine_config"]["gpu_info"]["count"], 0);
  EXPECT_GT(about["machine_config"]["memory_total"], 1 << 20);
  std::map<std::string, nlohmann::json> parameters;
  for (const nlohmann::json& entry : about["run_parameters"]) parameters[entry["name"]] = entry;
  EXPECT_EQ(parameters["batch_size"], nlohmann::json::parse(R"({"name": "batch_size", "long_value": 4})"));
  EXPECT_EQ(parameters["single_sess"], nlohmann::json::parse(R"({"name": "single_sess", "bool_value": "False"})"));
  EXPECT_EQ(parameters["optimizer"]["string_value"], "momentum");
  const std::regex date(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z)");
  EXPECT_TRUE(std::regex_match(about["run_date"].get<std::string>(), date)) << about["run_date"];

  std::map<std::string, std::vector<int>> steps;
  for (const std::string& line : lines_of(read_file(path("a/log/metric.log")))) {
    const nlohmann::json metric = nlohmann::json::parse(line);
    EXPECT_EQ(metric.size(), 6u);
    EXPECT_TRUE(metric["value"].is_number_float() && metric["unit"].is_null() && metric["extras"].empty()) << line;
    EXPECT_TRUE(std::regex_match(metric["timestamp"].get<std::string>(), date)) << line;
    steps[metric["name"]].push_back(metric["global_step"]);
  }
  const std::map<std::string, std::vector<int>> expected = {
      {"current_examples_per_sec", {1, 2}},     {"top_1_accuracy", {1, 2}},      {"top_5_accuracy", {1, 2}},
      {"average_examples_per_sec", {2}},        {"eval_top_1_accuracy", {2, 3}}, {"eval_top_5_accuracy", {2, 3}},
      {"eval_average_examples_per_sec", {2, 3}}};
  EXPECT_EQ(steps, expected);

  const std::string before = read_file(path("a/log/metric.log"));
  run({"--num_batches=3"});
  EXPECT_TRUE(read_file(path("a/log/metric.log")).starts_with(before)) << "it is appended to";
}

TEST_F(BenchmarkLogs, UnwritableFolderDoesNotEndTheRun) {
  write_file(path("file"), "");
  const ProgramResult result =
      train(synthetic() + Arguments{"--num_batches=1", "--benchmark_log_dir=" + path("file/log")});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(contains(result.err, "the run goes on without the benchmark log")) << result.err;
}

// Events of a training of three steps, with two steps per epoch, whose last evaluation reaches the target.
std::vector<std::string> compliance_lines(Outcome outcome, bool evaluates) {
  std::vector<std::string> lines;
  observers::MlperfLog log({.line = [&](const std::string& line) { lines.push_back(line); },
                            .seed = 7,
                            .global_batch = 5,
                            .device_batch = 5,
                            .training_images = 10,
                            .validation_images = evaluates ? 4u : 0,
                            .classes = 3,
                            .mean = {123.68f, 116.78f, 103.94f},
                            .optimizer = "momentum",
                            .momentum = 0.9,
                            .weight_decay = 1e-4,
                            .evaluation_offset = 0,
                            .target = 0.75,
                            .ends_with_evaluation = evaluates});
  const auto evaluate = [&](uint64_t step, double accuracy) {
    log.evaluating({.step = step});
    log.evaluating({.step = step, .batches = 1});
    log.evaluated({.step = step, .result = {.values = {{"top_1_accuracy", accuracy}}, .examples = 4}});
  };
  log.begun({});
  for (uint64_t step = 1; step <= 3; ++step) {
    log.stepped({.step = step, .learning_rate = 0.1f});
    if (step == 2 && evaluates) evaluate(2, 0.5);
  }
  log.ended({outcome, 3});
  if (evaluates && outcome == Outcome::finished) evaluate(3, 0.75);
  for (std::string& line : lines) line.erase(0, line.find(") ") + 2);
  return lines;
}

TEST(MlperfLog, PrintsTheTagsOfTfCnnBenchmarks) {
  const std::vector<std::string> lines = compliance_lines(Outcome::finished, true);
  const std::vector<std::string> expected = {"run_start",
                                             "eval_offset: 0",
                                             "run_set_random_seed: 7",
                                             "input_order",
                                             "input_batch_size: 5",
                                             "preproc_num_train_examples: 10",
                                             "input_crop_uses_bboxes: false",
                                             "input_distorted_crop_min_object_covered: 0.1",
                                             "input_distorted_crop_aspect_ratio_range: [0.75, 1.33]",
                                             "input_distorted_crop_area_range: [0.05, 1.0]",
                                             "input_distorted_crop_max_attempts: 100",
                                             "input_random_flip",
                                             "input_resize: [224, 224]",
                                             "input_mean_subtraction: [123.68, 116.78, 103.94]",
                                             "input_order",
                                             "preproc_num_eval_examples: 4",
                                             "input_resize_aspect_preserving: {\"min\": 256}",
                                             "input_central_crop: [224, 224]",
                                             "input_resize: [224, 224]",
                                             "input_mean_subtraction: [123.68, 116.78, 103.94]",
                                             "model_hp_initial_shape: [224, 224, 3]",
                                             "model_hp_final_shape: [3]",
                                             "model_hp_loss_fn: \"categorical_cross_entropy\"",
                                             "model_exclude_bn_from_l2: true",
                                             "model_l2_regularization: 0.0001",
                                             "input_bn_span: 5",
                                             "opt_name: \"stochastic_gradient_descent_with_momentum\"",
                                             "opt_momentum: 0.9",
                                             "train_loop",
                                             "opt_learning_rate: {\"deferred\": true, \"value\": 0.1}",
                                             "input_size: 10",
                                             "eval_start",
                                             "eval_stop",
                                             "eval_size: 4",
                                             "eval_accuracy: {\"epoch\": 1, \"value\": 0.5}",
                                             "eval_target: 0.75",
                                             "input_size: 5",
                                             "eval_start",
                                             "eval_stop",
                                             "eval_size: 4",
                                             "eval_accuracy: {\"epoch\": 1, \"value\": 0.75}",
                                             "eval_target: 0.75",
                                             "train_epoch: 0",
                                             "train_epoch: \"1, but this epoch only has 50% of the examples of a "
                                             "normal epoch\"",
                                             "run_stop: {\"success\": true}",
                                             "run_final"};
  EXPECT_EQ(lines, expected);
}

TEST(MlperfLog, EndsWithTheTraining) {
  EXPECT_EQ(compliance_lines(Outcome::finished, false).back(), "run_final");
  EXPECT_EQ(compliance_lines(Outcome::enough, true).back(), "run_final");
  const std::vector<std::string> stopped = compliance_lines(Outcome::stopped, false);
  EXPECT_FALSE(contains(stopped.back(), "run_")) << "the run goes on later";
}

TEST_F(BenchmarkLogs, ComplianceLogNeedsResNet50) {
  const Arguments few = {"--num_batches=1", "--num_warmup_batches=0", "--ml_perf_compliance_logging"};
  const ProgramResult other = train(synthetic() + few);
  EXPECT_EQ(other.code, 1);
  EXPECT_TRUE(contains(other.err, "--ml_perf_compliance_logging needs --model=resnet50_v1.5")) << other.err;
  const ProgramResult result = train(Arguments{"--model=resnet50_v1.5", "--image_size=32", "--batch_size=2"} + few);
  ASSERT_EQ(result.code, 0) << result.err;
  const std::regex line(R"(:::MLPv0\.5\.0 resnet \d+\.\d{9} \(apps/observers/mlperf_log\.cpp:\d+\) run_final)");
  EXPECT_TRUE(std::regex_search(result.out, line)) << result.out;
}

}  // namespace
}  // namespace dtrain
