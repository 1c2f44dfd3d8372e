// Outputs of a training besides checkpoints, as in TensorPack and AWS Mask R-CNN: TensorBoard events, stats.json,
// log.log and throughput lines.
#pragma once

#include <memory>
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
  // Throws Error(Fault::checkpoint) unless the run begins at TRAIN.STARTING_EPOCH or later.
  class StartingEpoch final : public Observer {
   public:
    StartingEpoch(int64_t epoch, uint64_t period) : epoch_(static_cast<uint64_t>(epoch)), period_(period) {}
    void begun(const Begun& event) override;

   private:
    const uint64_t epoch_, period_;  // period_: steps per epoch
  };

  // Opens log.log.
  class LogOpener final : public Observer {
   public:
    LogOpener(cli::Log& log, std::string path) : log_(log), path_(std::move(path)) {}
    void begun(const Begun&) override { log_.open_copy(path_); }

   private:
    cli::Log& log_;
    const std::string path_;
  };

  StartingEpoch starting_epoch_;
  std::unique_ptr<Observer> lines_;
  std::optional<LogOpener> log_opener_;
  std::optional<observers::ThroughputTracker> throughput_;
  std::optional<observers::StatsJson> stats_;
  std::optional<observers::Telemetry> telemetry_;
};

}  // namespace dtrain::mask_rcnn
