// What dtrain-scale prints and draws.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "apps/scale/checkpointing.h"
#include "apps/scale/model.h"
#include "apps/scale/plot.h"

namespace dtrain::scale {

// The predictions for growing numbers of GPUs.
struct Study {
  DeviceStep device;
  ScaleOptions options;
  FailureModel failures;
  double global_batch = 0;       // 0: no strong scaling
  std::vector<Prediction> weak;  // with the device's batch on each GPU
  std::vector<Prediction>
      strong;  // with global_batch / GPUs, rounded up: the fullest rank's; empty where not asked for
};

Study make_study(DeviceStep device, const ScaleOptions& options, const FailureModel& failures,
                 const std::vector<int64_t>& gpus, int64_t global_batch);

// Lines that say what is assumed.
std::vector<std::string> describe(const Study& study);
std::string table(const Study& study, const std::vector<Prediction>& rows);
std::string checkpoint_table(const Study& study);
Plot make_plot(const Study& study);
nlohmann::ordered_json to_json(const Study& study);

}  // namespace dtrain::scale
