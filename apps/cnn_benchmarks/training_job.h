// Objects of a run: device, ranks, model, data.
#pragma once

#include <functional>
#include <memory>

#include "apps/cnn_benchmarks/input.h"
#include "apps/ssd/model.h"
#include "libdtrain/distributed/communicator.h"
#include "libdtrain/ops/pointwise.h"
#include "libdtrain/run/faults.h"

namespace dtrain::cnn_benchmarks {

struct TrainingJob {
  // Builds the model with initial parameters or --weights. `fault_text`: injected faults, see Faults. Collective.
  TrainingJob(Settings run_config, TrainingSchedule run_plan, Datasets run_datasets, Group& run_group,
              const std::string& fault_text);

  // Preprocessing of batches on the device; synthetic batches are made in the same layout.
  PixelNormalization pixels() const;
  bool is_chief() const { return settings.ranks.is_chief(); }

  Settings settings;
  TrainingSchedule plan;
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
};

}  // namespace dtrain::cnn_benchmarks
