// A training job: everything that a run needs, created from its settings, schedule and data.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "apps/cnn_benchmarks/input.h"
#include "apps/ssd/model.h"
#include "dtrain/distributed/communicator.h"
#include "dtrain/ops/pointwise.h"
#include "dtrain/run/run.h"
#include "libdtrain/run/faults.h"

namespace dtrain::cnn_benchmarks {

struct TrainingJob {
  // Creates the model with initial parameters or --weights. Collective.
  TrainingJob(Settings job_settings, TrainingSchedule job_schedule, Datasets job_datasets, Group& job_group);

  TrainerOptions trainer_options() const;
  RunOptions run_options();
  // Preprocessing of batches on the device; synthetic batches are made in the same layout.
  PixelNormalization pixels() const;
  bool is_chief() const { return settings.ranks.is_chief(); }

  Settings settings;
  TrainingSchedule schedule;
  Datasets datasets;
  Group& group;
  Faults faults;
  std::function<double()> peak;  // see cli::PerformanceFlags
  std::unique_ptr<Context> context;
  std::unique_ptr<Communicator> communicator, statistics;  // for gradients; and for batch norm with --sync_batch_norm
  ParameterStore store;
  std::unique_ptr<ssd::Model> detector;  // null for image classifiers
  models::Classifier model;              // for a detector: name and sizes only
  std::string weights_summary;           // summary of loaded weights; empty if none

 private:
  void load_weights(const std::string& path);
  void note(const std::string& text) const;  // by the chief, unless empty
};

}  // namespace dtrain::cnn_benchmarks
