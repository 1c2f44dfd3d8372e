// A training job: everything that a run needs, created from its settings and data.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "apps/detection/detection_task.h"
#include "apps/mask_rcnn/flags.h"
#include "apps/mask_rcnn/model.h"
#include "apps/mask_rcnn/training_schedule.h"
#include "dtrain/distributed/communicator.h"
#include "dtrain/run/run.h"
#include "libdtrain/run/faults.h"

namespace dtrain::mask_rcnn {

// Settings of model and data, with the flags of the run and the rank.
struct TrainingSettings : Settings {
  TrainFlags flags{};
  cli::Ranks ranks{};
  cli::Machine machine{};
  RunShape shape{};                                    // by the flags or the resumed checkpoint
  std::map<std::string, std::string> flag_identity{};  // flags that are part of the run's identity
  std::map<std::string, std::string> flag_settings{};  // other recorded flags

  int64_t eval_batch() const { return flags.run.eval_batch_size > 0 ? flags.run.eval_batch_size : evaluation_batch; }
  uint64_t random_seed() const { return seed ? static_cast<uint64_t>(*seed) : flags.run.seed(); }
  // Interval in steps of histograms and images; 0: none.
  uint64_t details_every() const { return flags.summaries.details_every(flags.display.display_every); }
  int64_t global_batch() const { return shape.batch * shape.micro_steps * ranks.size; }
};

// Determines ranks, batch and threads from the flags or the resumed checkpoint, see elastic_resume(), which also
// documents errors. A resumed checkpoint of an older version keeps its conventions. `set`: the flags that were given.
// Appends notices. Collective.
TrainingSettings make_settings(TrainFlags flags, const cli::FlagSet& set, Group& group,
                               std::vector<std::string>& notices);

struct Datasets {
  std::shared_ptr<data::DetectionDataset> training;
  std::vector<detection::ValidationSplit> validation;     // empty: no evaluation
  std::function<void(const data::LoaderWork&)> report{};  // trace callback of the training loader's threads
};

// Opens the data, and sets number of classes and epoch length accordingly. Appends notices.
Datasets open_datasets(TrainingSettings& settings, std::vector<std::string>& notices);

struct TrainingJob {
  // Creates the model with initial parameters or weights. Collective.
  TrainingJob(TrainingSettings job_settings, Datasets job_datasets, Group& job_group);

  TrainerOptions trainer_options() const;
  RunOptions run_options();
  detection::TaskOptions task_options();
  bool is_chief() const { return settings.ranks.is_chief(); }

  TrainingSettings settings;
  Datasets datasets;
  Group& group;
  Model model;
  std::vector<std::string> notices{};  // about fine-tuning
  std::string weights_summary;         // summary of loaded weights; empty if none
  Faults faults;
  std::unique_ptr<Communicator> communicator;  // for gradients
  TrainingSchedule schedule;
  uint64_t total_steps;

 private:
  // Loads the initial weights, if any, and applies the flags of fine-tuning. Returns the summary.
  std::string load_weights();
};

OptimizerOptions optimizer_options(const RateSettings& rate);

}  // namespace dtrain::mask_rcnn
