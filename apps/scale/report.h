// Tables and plots of dtrain-scale.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "apps/scale/checkpointing.h"
#include "apps/scale/model.h"
#include "apps/scale/plot.h"

namespace dtrain::scale {

// Predictions by number of GPUs.
struct Study {
  DeviceStep device;
  ScaleOptions options;
  FailureModel failures;
  double global_batch = 0;       // 0: no strong scaling
  std::vector<Prediction> weak;  // weak scaling: the device's batch on each GPU
  std::vector<Prediction>
      strong;  // strong scaling: global_batch / GPUs, rounded up (the fullest rank); empty if not requested
};

Study make_study(DeviceStep device, const ScaleOptions& options, const FailureModel& failures,
                 const std::vector<int64_t>& gpus, int64_t global_batch);

// Lines with the assumptions.
std::vector<std::string> describe(const Study& study);
std::string table(const Study& study, const std::vector<Prediction>& rows);
std::string checkpoint_table(const Study& study);
Plot make_plot(const Study& study);
nlohmann::ordered_json to_json(const Study& study);

}  // namespace dtrain::scale
