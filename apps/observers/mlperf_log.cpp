// Tags of mlperf_compliance 0.0.10, in the order of tf_cnn_benchmarks' benchmark_cnn.py.
#include "apps/observers/mlperf_log.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include "apps/observers/mlperf_line.h"

namespace dtrain::observers {
namespace {

constexpr char kBenchmark[] = "resnet";
constexpr uint64_t kStepsBetweenRates = 100;
constexpr double kEvaluationScale = 1.145;  // short edge before the central crop

// Shortest decimal that round-trips to this float.
double short_number(float value) { return std::stod(fmt::format("{}", value)); }

// Integers are printed without a fraction.
nlohmann::ordered_json plain(double value) {
  if (std::trunc(value) == value) return static_cast<int64_t>(value);
  return value;
}

}  // namespace

MlperfLog::MlperfLog(MlperfLogOptions options) : options_(std::move(options)) {
  print("run_start");
  if (options_.evaluation_offset) print("eval_offset", plain(*options_.evaluation_offset));
  print("run_set_random_seed", options_.seed);
  print_input();
  print_model();
}

void MlperfLog::print(const char* tag, const Json& value, std::source_location where) {
  options_.line(mlperf_line(kBenchmark, tag, value, where));
}

void MlperfLog::print(const char* tag, std::source_location where) { print(tag, nullptr, where); }

void MlperfLog::print_input() {
  print("input_order");
  print("input_batch_size", plain(options_.global_batch));
  print("preproc_num_train_examples", options_.training_images);
  if (options_.preprocessed) print_training_pixels();
  if (options_.validation_images == 0) return;
  print("input_order");
  print("preproc_num_eval_examples", options_.validation_images);
  if (options_.preprocessed) print_evaluation_pixels();
}

MlperfLog::Json MlperfLog::image_shape() const { return {options_.image_size, options_.image_size}; }

MlperfLog::Json MlperfLog::mean() const {
  Json colours = Json::array();
  for (const float colour : options_.mean) colours.push_back(short_number(colour));
  return colours;
}

void MlperfLog::print_training_pixels() {
  print("input_crop_uses_bboxes", options_.crops_by_boxes);
  print("input_distorted_crop_min_object_covered", 0.1);
  print("input_distorted_crop_aspect_ratio_range", {0.75, 1.33});
  print("input_distorted_crop_area_range", {0.05, 1.0});
  print("input_distorted_crop_max_attempts", 100);
  print("input_random_flip");
  print("input_resize", image_shape());
  print("input_mean_subtraction", mean());
}

void MlperfLog::print_evaluation_pixels() {
  print("input_resize_aspect_preserving",
        {{"min", static_cast<int64_t>(static_cast<double>(options_.image_size) * kEvaluationScale)}});
  print("input_central_crop", image_shape());
  print("input_resize", image_shape());
  print("input_mean_subtraction", mean());
}

void MlperfLog::print_model() {
  print("model_hp_initial_shape", {options_.image_size, options_.image_size, 3});
  print("model_hp_final_shape", Json::array({options_.classes}));
  print("model_hp_loss_fn", "categorical_cross_entropy");
  print("model_exclude_bn_from_l2", true);
  if (options_.weight_decay != 0) print("model_l2_regularization", options_.weight_decay);
  print("input_bn_span", options_.device_batch);
  const bool momentum = options_.optimizer == "momentum";
  if (momentum || options_.optimizer == "sgd")
    print("opt_name", momentum ? "stochastic_gradient_descent_with_momentum" : "stochastic_gradient_descent");
  if (momentum) print("opt_momentum", options_.momentum);
}

double MlperfLog::epochs(uint64_t step) const {
  return static_cast<double>(step) * options_.global_batch / static_cast<double>(options_.training_images);
}

void MlperfLog::begun(const Begun& event) {
  counted_step_ = last_step_ = event.step;
  if (!event.complete) print("train_loop");
}

void MlperfLog::stepped(const Stepped& event) {
  last_step_ = event.step;
  if ((event.step - 1) % kStepsBetweenRates == 0)
    print("opt_learning_rate", {{"deferred", true}, {"value", short_number(static_cast<float>(event.learning_rate))}});
}

void MlperfLog::print_images(uint64_t step) {
  print("input_size", plain(static_cast<double>(step - counted_step_) * options_.global_batch));
  counted_step_ = step;
}

void MlperfLog::evaluating(const Evaluating& event) {
  if (event.batches > 0) return;
  if (!ended_) print_images(event.step);
  print("eval_start");
}

void MlperfLog::evaluated(const Evaluated& event) {
  const double accuracy = find_metric(event.result.values, "top_1_accuracy").value_or(0);
  print("eval_stop");
  print("eval_size", event.result.examples);
  print("eval_accuracy", {{"epoch", static_cast<int64_t>(epochs(event.step))}, {"value", accuracy}});
  if (options_.target) {
    print("eval_target", *options_.target);
    reached_ = accuracy >= *options_.target;
  }
  if (ended_) finish();
}

void MlperfLog::ended(const Ended& event) {
  if (event.outcome == Outcome::stopped) return;
  ended_ = true;
  print_images(event.step);
  if (event.outcome == Outcome::enough || !options_.ends_with_evaluation) finish();
}

void MlperfLog::finish() {
  const double made = epochs(last_step_);
  const auto whole = static_cast<int64_t>(made);
  for (int64_t epoch = 0; epoch < whole; ++epoch) print("train_epoch", epoch);
  if (made > static_cast<double>(whole))
    print("train_epoch", fmt::format("{}, but this epoch only has {}% of the examples of a normal epoch", whole,
                                     100 * (made - static_cast<double>(whole))));
  print("run_stop", {{"success", reached_}});
  print("run_final");
}

}  // namespace dtrain::observers
