// The learning-rate rule of a training, from the settings and the batch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/mask_rcnn/settings.h"
#include "libdtrain/train/schedule.h"

namespace dtrain::mask_rcnn {

class RateRule {
 public:
  RateRule(const RateSettings& settings, int64_t global_batch);
  uint64_t steps() const { return steps_; }
  const Schedule& schedule() const { return schedule_; }
  std::vector<std::string> lines() const;

 private:
  RateSettings settings_;
  int64_t batch_;
  uint64_t steps_;
  Schedule schedule_;
};

}  // namespace dtrain::mask_rcnn
