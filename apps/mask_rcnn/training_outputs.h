// Output files of a training besides checkpoints, as in TensorPack and AWS Mask R-CNN: TensorBoard events, stats.json,
// log.log and throughput lines.
#pragma once

#include <optional>
#include <vector>

#include "apps/cli/line_file.h"
#include "apps/cli/log.h"
#include "apps/mask_rcnn/training_job.h"
#include "apps/mask_rcnn/training_log.h"
#include "apps/observers/event_files.h"
#include "apps/observers/json_lines.h"
#include "apps/observers/live_view.h"
#include "apps/observers/stats_json.h"
#include "apps/observers/throughput_tracker.h"

namespace dtrain::mask_rcnn {

// Files are in train_dir, if given, and written only by the chief, once the run has locked train_dir.
class TrainingOutputs {
 public:
  // `job` outlives this. `log` is also written to log.log from now on, and must not be used after this object.
  TrainingOutputs(const TrainingJob& job, const std::string& host, cli::Log& log);
  // Histograms and images, if requested.
  void show(observers::StepDetails details) {
    if (events_) events_->show(std::move(details));
  }
  // In notification order. `steps`: of the run.
  std::vector<Observer*> observers(uint64_t steps, const Context& context);

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

  cli::Log& log_;
  const TrainingJob& job_;
  const double images_;  // of a step
  const uint64_t period_;
  cli::LineFile log_file_;
  std::optional<LogOpener> log_opener_;
  std::optional<TrainingLog> lines_;
  std::optional<observers::ThroughputTracker> throughput_;
  std::optional<observers::EventFiles> events_;
  std::optional<observers::StatsJson> stats_;
  std::optional<observers::JsonLines> metrics_;
  std::optional<observers::LiveView> live_;
};

}  // namespace dtrain::mask_rcnn
