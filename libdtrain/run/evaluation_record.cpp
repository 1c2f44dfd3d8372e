#include "libdtrain/run/evaluation_record.h"

#include <cmath>
#include <filesystem>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "dtrain/io/atomic_file.h"
#include "dtrain/io/input_file.h"
#include "libdtrain/distributed/read_texts.h"
#include "libdtrain/io/json_limits.h"

namespace dtrain {
namespace {

constexpr size_t kMaxBytes = size_t{64} << 20;
constexpr const char* kRecordEnd = "}\n";
constexpr JsonLimits kLimits = {.bytes = kMaxBytes, .values = size_t{4} << 20};

}  // namespace

EvaluationRecord::EvaluationRecord(FollowOptions options, const std::string& train_dir)
    : options_(std::move(options)), path_(train_dir.empty() ? "" : train_dir + "/evaluations.json") {
  DT_CHECK(!follows() || options_.better != Better::unset, "evaluations: '", options_.metric,
           "' needs a direction: set FollowOptions::better to Better::higher or Better::lower");
  DT_CHECK(options_.min_delta >= 0, "evaluations: an improvement by ", options_.min_delta, ", expected 0 or more");
  DT_CHECK(follows() || (!options_.keep_best && options_.patience == 0),
           "evaluations: keep_best and patience need the name of a metric");
  DT_CHECK(!options_.keep_best || !path_.empty(), "evaluations: keep_best needs a train_dir");
}

// NaN becomes null.
std::string EvaluationRecord::text() const {
  nlohmann::json list = nlohmann::json::array();
  for (const auto& [step, values] : evaluations_) list.push_back({{"step", step}, {"values", values}});
  return nlohmann::json{{"evaluations", std::move(list)}}.dump(1) + "\n";  // ends with kRecordEnd
}

void EvaluationRecord::read(const std::string& text) {
  const auto json = parse_json<nlohmann::json>(text, path_, Fault::checkpoint, kLimits);
  try {
    for (const auto& one : json.at("evaluations")) {
      Values& values = evaluations_[count_at(one, "step", UINT64_MAX, path_, Fault::checkpoint)];
      for (const auto& [name, value] : one.at("values").items())
        values[name] = value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
    }
  } catch (const nlohmann::json::exception& error) {
    throw Error(Fault::checkpoint,
                fmt::format("{}: damaged: {}; move it away to go on without what it says", path_, error.what()));
  }
}

std::string EvaluationRecord::restore(Group& group, int chief, uint64_t step) {
  evaluations_.clear();
  if (!follows() || path_.empty()) return {};
  std::string text, failure, lost;
  if (group.rank() == chief && std::filesystem::exists(path_)) {
    try {
      text = read_text(path_, kMaxBytes, Fault::checkpoint);
      if (text.ends_with(kRecordEnd)) {
        read(text);
      } else {
        lost = path_ + ": truncated, e.g. by a power failure; earlier evaluations are lost";
        text.clear();
      }
    } catch (const Error& error) {
      failure = error.what();
    }
  }
  if (group.size() > 1) {
    failure = group.broadcast(failure, chief, "state of the evaluations");
    text = group.broadcast(text, chief, "evaluations");
  }
  if (!failure.empty()) throw Error(Fault::checkpoint, failure);
  if (group.rank() != chief && !text.empty())
    read_text(group, chief, text, "evaluations", [this](const std::string& told) { read(told); });
  evaluations_.erase(evaluations_.upper_bound(step), evaluations_.end());
  return lost;
}

void EvaluationRecord::add(uint64_t step, const Evaluation& evaluation, bool writes) {
  if (!follows() || evaluation.values.empty()) return;
  Values values;
  for (const MetricValue& value : evaluation.values) values[value.name] = value.value;
  if (!values.contains(options_.metric)) {
    std::string names;
    for (const auto& [name, value] : values) names += (names.empty() ? "" : ", ") + name;
    throw Error(Fault::config, fmt::format("evaluations have no metric '{}'; they have {}", options_.metric, names));
  }
  evaluations_[step] = std::move(values);
  if (!writes || path_.empty()) return;
  AtomicFile file(path_);
  file.write(text());
  file.commit(/*durable=*/false);  // other ranks would wait for a slow disk
}

std::optional<double> EvaluationRecord::value_of(const Values& values) const {
  const auto found = values.find(options_.metric);
  return found == values.end() || !std::isfinite(found->second) ? std::nullopt : std::optional(found->second);
}

bool EvaluationRecord::is_better(double value, double other, double margin) const {
  return options_.better == Better::lower ? value < other - margin : value > other + margin;
}

std::optional<EvaluationRecord::Best> EvaluationRecord::best() const {
  std::optional<Best> best;
  for (const auto& [step, values] : evaluations_)
    if (const auto value = value_of(values); value && (!best || is_better(*value, best->value, 0)))
      best = {step, *value};
  return best;
}

uint64_t EvaluationRecord::without_improvement() const {
  std::optional<double> reference;
  uint64_t count = 0;
  for (const auto& [step, values] : evaluations_) {
    ++count;
    const auto value = value_of(values);
    if (!value || (reference && !is_better(*value, *reference, options_.min_delta))) continue;
    reference = value;
    count = 0;
  }
  return count;
}

std::string EvaluationRecord::describe_stall() const {
  const auto found = best();
  return fmt::format("{} has not improved for {} evaluations{}", options_.metric, without_improvement(),
                     found ? fmt::format("; the best was {:.6g}, after step {}", found->value, found->step) : "");
}

}  // namespace dtrain
