// Metrics file: a JSON line per displayed step, evaluation and checkpoint.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "apps/observers/step_figures.h"

namespace dtrain::observers {

// {"step":20,"loss":2.3,...} for a step; {"step":20,"eval_top_1_accuracy":0.7,...} for an evaluation, with the prefix
// eval_; {"step":20,"checkpoint_bytes":...,"checkpoint_seconds":...} for a checkpoint. If the file cannot be written,
// prints one notice and continues without it.
class JsonLines final : public Observer {
 public:
  JsonLines(std::string path, FigureOptions figures, std::function<void(const std::string&)> notice)
      : path_(std::move(path)), notice_(std::move(notice)), figures_(std::move(figures)) {}

  // Truncates later steps in the file. Throws Error for an invalid path.
  void begun(const Begun& event) override;
  void stepping(uint64_t step) override;
  void stepped(const Stepped& event) override;
  void evaluated(const Evaluated& event) override;
  void saved(const Saved& event) override;

 private:
  void append(uint64_t step, const MetricsFile::Fields& fields);

  const std::string path_;
  const std::function<void(const std::string&)> notice_;
  StepFigures figures_;
  std::optional<MetricsFile> file_;
};

}  // namespace dtrain::observers
