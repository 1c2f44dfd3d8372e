// Outputs of a training besides checkpoints, as in TensorPack and AWS Mask R-CNN: TensorBoard events, stats.json,
// log.log and throughput lines.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/cli/log.h"
#include "apps/mask_rcnn/training_job.h"
#include "apps/mask_rcnn/training_log.h"
#include "apps/observers/stats_json.h"
#include "apps/observers/telemetry.h"
#include "apps/observers/throughput_tracker.h"

namespace dtrain::mask_rcnn {

// Files are in train_dir, if given, and written only by the chief, once the run has locked train_dir.
class TrainingOutputs {
 public:
  // All arguments outlive this.
  TrainingOutputs(TrainingJob& job, cli::Log& log);
  // Histograms and images, if requested.
  void show(observers::StepDetails details) {
    if (telemetry_) telemetry_->show(std::move(details));
  }
  // In notification order.
  std::vector<Observer*> observers();

 private:
  // Opens log.log.
  class LogOpener final : public Observer {
   public:
    LogOpener(cli::Log& log, std::string path) : log_(log), path_(std::move(path)) {}
    void begun(const Begun&) override { log_.open_copy(path_); }

   private:
    cli::Log& log_;
    const std::string path_;
  };

  TrainingLog lines_;
  std::optional<LogOpener> log_opener_;
  std::optional<observers::ThroughputTracker> throughput_;
  std::optional<observers::StatsJson> stats_;
  std::optional<observers::Telemetry> telemetry_;
};

}  // namespace dtrain::mask_rcnn
