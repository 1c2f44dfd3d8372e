// The objects of a run: device, ranks, model, data.
#pragma once

#include <functional>
#include <memory>

#include "apps/cnn_benchmarks/input.h"
#include "libdtrain/distributed/communicator.h"
#include "libdtrain/ops/pointwise.h"
#include "libdtrain/run/faults.h"

namespace dtrain::cnn_benchmarks {

struct Session {
  // Builds the model with its initial parameters, or those of --weights. `fault_text`: faults on purpose, as Faults
  // reads them. Collective.
  Session(Config run_config, Plan run_plan, Datasets run_datasets, Group& run_group, const std::string& fault_text);

  // What turns the images of a batch into the model's; a synthetic batch is made that way.
  PixelNormalization pixels() const;
  bool is_chief() const { return config.ranks.is_chief(); }

  Config config;
  Plan plan;
  Datasets datasets;
  Group& group;
  Faults faults;
  std::function<double()> peak;  // see cli::PerformanceFlags
  std::unique_ptr<Context> context;
  std::unique_ptr<Communicator> communicator, statistics;  // for gradients; for batch norm, with --sync_batch_norm
  ParameterStore store;
  models::Classifier model;
  std::string weights_summary;  // what --weights loaded; empty without it
};

}  // namespace dtrain::cnn_benchmarks
