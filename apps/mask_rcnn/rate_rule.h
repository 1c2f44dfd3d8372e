// The learning rate of each step, from settings that were made for another batch.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/cli/options/run.h"
#include "apps/mask_rcnn/settings.h"
#include "libdtrain/train/schedule.h"

namespace dtrain::mask_rcnn {

// For steps of `batch` images, those of all devices and micro-steps together. The rate grows in proportion to the batch
// (Goyal et al. 2017). Warm-up is linear in steps from RateSettings::warmup_rate and as long whatever the batch; steps
// of the schedule are rounded down.
class RateRule {
 public:
  // Throws Error where the settings make no schedule at this batch: one that does not increase, that ends before the
  // first step or has a drop before it, or that drops or ends within the warm-up. `length`: steps that the whole
  // schedule is stretched or squeezed to; where it is squeezed to a few, drops that come to one step are one, and a
  // default warm-up ends before the first of them.
  RateRule(const Settings& settings, int64_t batch, std::optional<uint64_t> length = {});

  const Schedule& schedule() const { return schedule_; }                   // its epochs are steps
  uint64_t steps() const { return static_cast<uint64_t>(steps_.back()); }  // of the whole run
  std::vector<std::string> lines() const;                                  // what came out and how, for people

 private:
  void stretch(int64_t length);

  RateSettings rate_;
  int64_t batch_, epoch_steps_;
  std::vector<int64_t> steps_;  // those of the drops and of the end
  Schedule schedule_;
};

// The rule of a run on a data set of `images`: --num_epochs scales the milestones of the schedule, and so does
// --num_batches where it is more than the preset's schedule has; else the schedule is the settings' own.
// Throws Error as the rule does, and where --num_epochs is less than an image.
RateRule rate_rule(const Settings& settings, const cli::RunFlags& flags, uint64_t images, int64_t batch);
// The steps of that run: those of the schedule, or --num_batches of it, and at most --max_train_steps.
uint64_t steps_of(const RateRule& rate, const cli::RunFlags& flags);

}  // namespace dtrain::mask_rcnn
