// Flags of `train`, and the training objects derived from them and the settings.
#pragma once

#include <map>
#include <string>

#include "apps/cli/options/checkpoints.h"
#include "apps/cli/options/display.h"
#include "apps/cli/options/machine.h"
#include "apps/cli/options/ranks.h"
#include "apps/cli/options/run.h"
#include "apps/cli/options/summaries.h"
#include "apps/cli/options/tracing.h"
#include "apps/detection/detection_task.h"
#include "apps/mask_rcnn/flags.h"
#include "libdtrain/run/elastic.h"
#include "libdtrain/run/run.h"

namespace dtrain::mask_rcnn {

struct TrainFlags {
  ModelFlags model;
  cli::RunFlags run;
  cli::MachineFlags machine;
  cli::RankFlags ranks;
  cli::CheckpointFlags checkpoints;
  cli::DisplayFlags display;
  cli::SummaryFlags summaries{.summary_verbosity = 1};
  cli::TracingFlags tracing;
  int64_t throughput_log_freq = 100;

  void declare(cli::FlagSet& flags);
  void check(const cli::FlagSet& flags) const;
};

// Parts of a training.
struct TrainingJob {
  const TrainFlags& flags;
  Settings settings;
  cli::Ranks ranks;
  cli::Machine machine;
  std::map<std::string, std::string> identity;
  RunShape shape{};
  std::shared_ptr<data::DetectionDataset> training{};
  std::vector<detection::ValidationSplit> validation{};  // empty: no evaluation

  int64_t evaluation_batch() const {
    return flags.run.eval_batch_size > 0 ? flags.run.eval_batch_size : settings.evaluation_batch;
  }
  uint64_t seed() const { return settings.seed ? static_cast<uint64_t>(*settings.seed) : flags.run.seed(); }
  // Interval in steps of histograms and images; 0: none.
  uint64_t details_every() const { return flags.summaries.details_every(flags.display.display_every); }
  int64_t global_batch() const { return shape.batch * shape.micro_steps * ranks.size; }
};

// Determines the job's shape (ranks, batch, threads) from the flags or the resumed checkpoint, see
// elastic_resume(), which also documents errors. Appends notices. Collective.
void settle_shape(TrainingJob& job, const cli::FlagSet& flags, Group& group, std::vector<std::string>& notices);

// KEY=VALUE lines that preserve the conventions of a resumed checkpoint of an older version, see
// unrecorded_conventions(), with a notice. Empty for other runs. Collective.
std::vector<std::string> continued_conventions(const cli::CheckpointFlags& flags, Group& group,
                                               std::vector<std::string>& notices);

// Opens the job's data, and sets number of classes and epoch length accordingly. Appends notices.
void open_data(TrainingJob& job, std::vector<std::string>& notices);

detection::TaskOptions task_options(const TrainingJob& job);
RunOptions run_options(const TrainingJob& job, uint64_t steps, Faults& faults);
TrainerOptions trainer_options(const TrainingJob& job, Communicator& communicator);
OptimizerOptions optimizer_options(const RateSettings& rate);

}  // namespace dtrain::mask_rcnn
