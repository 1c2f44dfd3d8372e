// Outputs of a run: the log, and on request event files, the metrics file, other tools' logs, traces and live views.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "apps/cli/log.h"
#include "apps/cnn_benchmarks/training_job.h"
#include "apps/observers/telemetry.h"
#include "apps/observers/tf_cnn_log.h"
#include "apps/ssd/coco_log.h"

namespace dtrain::cnn_benchmarks {

observers::TfCnnLogOptions log_options(const TrainingJob& job);

// Files are written only by the chief.
class TrainingOutputs {
 public:
  // `own_log`, if not null, replaces tf_cnn_benchmarks' log. All arguments outlive this.
  TrainingOutputs(TrainingJob& job, cli::Log& log, Observer* own_log);
  // Histograms and images, if requested.
  void show(observers::StepDetails details) {
    if (telemetry_) telemetry_->show(std::move(details));
  }
  // In notification order.
  std::vector<Observer*> observers();

 private:
  observers::TfCnnLog tf_log_;
  std::optional<ssd::CocoLog> coco_log_;
  Observer* log_;
  std::vector<std::unique_ptr<Observer>> other_files_;
  std::optional<observers::Telemetry> telemetry_;
};

}  // namespace dtrain::cnn_benchmarks
