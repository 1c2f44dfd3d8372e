// Outputs of a run.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "apps/cli/log.h"
#include "apps/cnn_benchmarks/training_job.h"
#include "apps/observers/config_keeper.h"
#include "apps/observers/event_files.h"
#include "apps/observers/json_lines.h"
#include "apps/observers/live_view.h"
#include "apps/observers/tf_cnn_log.h"
#include "apps/observers/tracing.h"
#include "apps/ssd/coco_log.h"

namespace dtrain::cnn_benchmarks {

// The log, and on request the metrics file, event files, other tools' logs and traces.
class TrainingOutputs {
 public:
  // `own_log`, if not null, replaces tf_cnn_benchmarks' log. All arguments outlive this.
  TrainingOutputs(TrainingJob& job, cli::Log& log, Observer* own_log);
  void show(observers::StepDetails details) {
    if (events_) events_->show(std::move(details));
  }
  std::vector<Observer*> all();

 private:
  observers::TfCnnLog tf_log_;
  std::optional<ssd::CocoLog> coco_log_;
  Observer* log_;
  std::optional<observers::ConfigKeeper> config_;
  std::optional<observers::JsonLines> metrics_;
  std::optional<observers::EventFiles> events_;
  std::vector<std::unique_ptr<Observer>> others_;
  std::optional<observers::Tracing> tracing_;
  std::optional<observers::LiveView> live_;
};

}  // namespace dtrain::cnn_benchmarks
