#include "apps/observers/benchmark_log.h"

#include <chrono>
#include <ctime>
#include <nlohmann/json.hpp>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "apps/observers/machine_report.h"

namespace dtrain::observers {
namespace {

using Json = nlohmann::ordered_json;

// UTC time in microseconds.
std::string timestamp() {
  using namespace std::chrono;
  const auto now = duration_cast<microseconds>(system_clock::now().time_since_epoch()).count();
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:06}Z", fmt::gmtime(static_cast<std::time_t>(now / 1'000'000)),
                     now % 1'000'000);
}

Json entry_of(const std::string& name, const RunParameter& value) {
  Json entry{{"name", name}};
  if (const bool* flag = std::get_if<bool>(&value)) entry["bool_value"] = *flag ? "True" : "False";
  if (const int64_t* number = std::get_if<int64_t>(&value)) entry["long_value"] = *number;
  if (const double* number = std::get_if<double>(&value)) entry["float_value"] = *number;
  if (const std::string* text = std::get_if<std::string>(&value)) entry["string_value"] = *text;
  return entry;
}

}  // namespace

void BenchmarkLog::attempt(const std::function<void()>& write) {
  try {
    write();
  } catch (const Error& error) {
    notice_(fmt::format("{}; the run goes on without the benchmark log", error.what()));
    metrics_.reset();
  }
}

void BenchmarkLog::write_run() const {
  Json run;
  run["model_name"] = options_.model;
  run["dataset"]["name"] = options_.dataset;
  run["machine_config"] = machine_report(options_.gpus, options_.gpu);
  run["test_id"] = options_.test_id.empty() ? Json() : Json(options_.test_id);
  run["run_date"] = timestamp();
  run["tensorflow_version"] = {{"version", "dtrain " + options_.version}, {"git_hash", ""}};
  run["tensorflow_environment_variables"] = Json::array();
  run["run_parameters"] = Json::array();
  for (const auto& [name, value] : options_.parameters) run["run_parameters"].push_back(entry_of(name, value));
  AtomicFile file(options_.folder + "/benchmark_run.log");
  file.write(run.dump() + "\n");
  file.commit();
}

void BenchmarkLog::begun(const Begun& event) {
  statistics_.begun(event.step);
  if (event.complete) return;
  attempt([&] {
    make_directories(system_files(), options_.folder);
    write_run();
    metrics_.emplace().open(options_.folder + "/metric.log");
  });
}

void BenchmarkLog::put(const std::string& name, double value, uint64_t step) {
  if (!metrics_) return;
  Json metric;
  metric["name"] = name;
  metric["value"] = value;
  metric["unit"] = nullptr;
  metric["global_step"] = step;
  metric["timestamp"] = timestamp();
  metric["extras"] = Json::array();
  attempt([&] { metrics_->append(metric.dump()); });
}

void BenchmarkLog::stepping(uint64_t) { statistics_.stepping(); }

void BenchmarkLog::stepped(const Stepped& event) {
  statistics_.stepped(event);
  if (!event.shown || statistics_.speed().steps() == 0) return;
  const uint64_t step = event.step - options_.speed.warmup_steps;
  put("current_examples_per_sec", statistics_.speed().speed(), step);
  for (const char* name : {"top_1_accuracy", "top_5_accuracy"})
    if (const auto value = find_metric(event.metrics, name)) put(name, *value, step);
}

void BenchmarkLog::evaluated(const Evaluated& event) {
  if (event.result.seconds > 0)
    put("eval_average_examples_per_sec", static_cast<double>(event.result.examples) / event.result.seconds, event.step);
  for (const std::string name : {"top_1_accuracy", "top_5_accuracy", "mean_average_precision"})
    if (const auto value = find_metric(event.result.values, name)) put("eval_" + name, *value, event.step);
  for (const MetricValue& value : event.result.values)
    if (value.name.starts_with("COCO/")) put(value.name, value.value, event.step);
}

void BenchmarkLog::ended(const Ended& event) {
  const double elapsed = statistics_.elapsed();
  if (event.outcome == Outcome::stopped || elapsed <= 0) return;
  const auto steps = static_cast<double>(statistics_.speed().steps());
  put("average_examples_per_sec", steps * options_.global_batch / elapsed, statistics_.speed().steps());
}

}  // namespace dtrain::observers
