// EvaluationRecord: history of a run's evaluations, best result and early stopping.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "dtrain/run/run.h"

namespace dtrain {

// <train_dir>/evaluations.json holds all evaluations by step, so that decisions do not depend on interruptions or on
// the metric followed before. Rewritten atomically after each evaluation, without sync: a power failure may lose it.
class EvaluationRecord {
 public:
  struct Best {
    uint64_t step = 0;
    double value = 0;
  };

  // `train_dir` empty: in memory only. Throws Error(Fault::config) for a metric without direction
  // (FollowOptions::better).
  EvaluationRecord(FollowOptions options, const std::string& train_dir);

  bool follows() const { return !options_.metric.empty(); }
  // Adopts the chief's entries up to `step`, from which the run continues. An empty or truncated file is ignored, with
  // a notice on the chief. Throws Error(Fault::checkpoint) on all ranks for other damage. Collective.
  std::string restore(Group& group, int chief, uint64_t step);
  // Records the evaluation after step `step`, replacing one after the same step; skipped if it has no values, as on
  // ranks without results. `writes`: this rank writes the file. Throws Error(Fault::config) if the metric is missing,
  // Error(Fault::resource) if the file cannot be written.
  void add(uint64_t step, const Evaluation& evaluation, bool writes);

  bool holds(uint64_t step) const { return evaluations_.contains(step); }
  // The earliest of equals; nullopt if all values are NaN.
  std::optional<Best> best() const;
  // Evaluations since the last improvement.
  uint64_t without_improvement() const;
  bool stalls() const { return options_.patience > 0 && without_improvement() >= options_.patience; }
  // "top_1_accuracy has not improved for 3 evaluations; the best was 0.71, after step 40".
  std::string describe_stall() const;

 private:
  using Values = std::map<std::string, double>;
  // Whether `value` is better than `other` by more than `margin`.
  bool is_better(double value, double other, double margin) const;
  std::optional<double> value_of(const Values& values) const;  // nullopt for NaN
  std::string text() const;
  void read(const std::string& text);

  FollowOptions options_;
  std::string path_;
  std::map<uint64_t, Values> evaluations_;  // by step
};

}  // namespace dtrain
