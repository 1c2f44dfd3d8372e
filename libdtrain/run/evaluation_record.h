// EvaluationRecord: what a run's evaluations came to, which is the best, and whether they still improve.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "libdtrain/distributed/group.h"
#include "libdtrain/run/task.h"

namespace dtrain {

// Which of two values of a metric is the better one.
enum class Better : uint8_t { unset, higher, lower };

// What follows from a metric of the evaluations.
struct FollowOptions {
  std::string metric{};           // a name of Evaluation::values; empty: none is followed
  Better better = Better::unset;  // to be said where a metric is followed: an accuracy is better higher, an error lower
  bool keep_best = false;         // the checkpoint of the best evaluation is kept besides the newest ones
  uint64_t patience = 0;  // training ends after so many evaluations in a row without improvement; 0: it does not
  double min_delta = 0;   // what is less of an improvement than this is none to `patience`
};

// The file <train_dir>/evaluations.json holds the values of all evaluations by their steps, so that what follows from
// them is the same whether or not a run was interrupted, and whatever was followed before. It is replaced as a whole
// after each evaluation, without waiting for the disk: a loss of power may take it.
class EvaluationRecord {
 public:
  struct Best {
    uint64_t step = 0;
    double value = 0;
  };

  // `train_dir` empty: the record is lost with this object. Throws Error(Fault::config) where a metric is followed and
  // FollowOptions::better does not say in which direction.
  EvaluationRecord(FollowOptions options, const std::string& train_dir);

  bool follows() const { return !options_.metric.empty(); }
  // Takes over what the chief's file says of steps up to `step`, which the run goes on from. Where the file is empty
  // or cut off nothing is taken over, and the chief gets a line for people. Throws Error(Fault::checkpoint) on all
  // ranks where it is damaged otherwise. Collective.
  std::string restore(Group& group, int chief, uint64_t step);
  // The evaluation after step `step`, in place of an earlier one after the same step; without values, as of a rank that
  // is not told them, it is left out. `writes`: this rank writes the file. Throws Error(Fault::config) where the metric
  // is not among the values, and Error(Fault::resource) where the file cannot be written.
  void add(uint64_t step, const Evaluation& evaluation, bool writes);

  bool holds(uint64_t step) const { return evaluations_.contains(step); }
  // The first of several; none where no value is a number.
  std::optional<Best> best() const;
  // Evaluations since the last one that improved on those before.
  uint64_t without_improvement() const;
  bool stalls() const { return options_.patience > 0 && without_improvement() >= options_.patience; }
  // "top_1_accuracy has not improved for 3 evaluations; the best was 0.71, after step 40".
  std::string describe_stall() const;

 private:
  using Values = std::map<std::string, double>;
  // True where `value` is by more than `margin` better than `other`.
  bool is_better(double value, double other, double margin) const;
  std::optional<double> value_of(const Values& values) const;  // none where it is no number
  std::string text() const;
  void read(const std::string& text);

  FollowOptions options_;
  std::string path_;
  std::map<uint64_t, Values> evaluations_;  // by step
};

}  // namespace dtrain
