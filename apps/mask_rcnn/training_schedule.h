// Training schedule: number of steps and learning rates, scaled from the settings' reference batch.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/cli/options/run.h"
#include "apps/mask_rcnn/settings.h"
#include "dtrain/train/schedule.h"

namespace dtrain::mask_rcnn {

// Schedule at the global batch size `batch` (all devices and micro-steps). Linear scaling rule (Goyal et al. 2017).
// Linear warm-up from RateSettings::warmup_rate, with a length independent of the batch. Steps of the schedule are
// rounded down.
class TrainingSchedule {
 public:
  // Throws Error for an invalid schedule at this batch: not increasing, a drop or the end before the first step or
  // within the warm-up. `length`: number of steps that the schedule is scaled to; if that is small, drops at the same
  // step are merged, and a default warm-up is shortened to end before the first drop.
  TrainingSchedule(const Settings& settings, int64_t batch, std::optional<uint64_t> length = {});

  const Schedule& learning_rate() const { return learning_rate_; }         // its epochs are steps
  uint64_t steps() const { return static_cast<uint64_t>(steps_.back()); }  // of the whole run
  std::vector<std::string> lines() const;                                  // description of the schedule, for the log

 private:
  void stretch(int64_t length);

  RateSettings rate_;
  int64_t batch_, epoch_steps_;
  std::vector<int64_t> steps_;  // of the drops and of the end
  Schedule learning_rate_;
};

// Schedule of a run on `images` images. --num_epochs scales the milestones, and so does --num_batches if it exceeds the
// preset's schedule; else the schedule is as configured.
// Throws Error for an invalid schedule, and if --num_epochs is less than one image.
TrainingSchedule make_schedule(const Settings& settings, const cli::RunFlags& flags, uint64_t images, int64_t batch);
// Number of steps: of the schedule, or --num_batches, and at most --max_train_steps.
uint64_t steps_of(const TrainingSchedule& schedule, const cli::RunFlags& flags);

}  // namespace dtrain::mask_rcnn
