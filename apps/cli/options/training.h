// Flag groups shared by all training programs, and the engine's options that they determine.
#pragma once

#include "apps/cli/options/checkpoints.h"
#include "apps/cli/options/display.h"
#include "apps/cli/options/fine_tuning.h"
#include "apps/cli/options/machine.h"
#include "apps/cli/options/ranks.h"
#include "apps/cli/options/run.h"
#include "apps/cli/options/summaries.h"
#include "apps/cli/options/tracing.h"
#include "dtrain/run/elastic.h"
#include "dtrain/run/run.h"

namespace dtrain::cli {

struct TrainingFlags {
  RunFlags run;
  MachineFlags machine;
  RankFlags ranks;
  CheckpointFlags checkpoints;
  FineTuningFlags fine_tuning;
  DisplayFlags display;
  SummaryFlags summaries;
  TracingFlags tracing;

  // Settings given on the command line, for elastic_resume().
  ExplicitSettings explicit_settings(const FlagSet& flags) const;
  // Options that determine the checkpoint to resume.
  RunOptions resume_options(const Ranks& position) const;
  // Checkpoints, and the intervals of displayed steps and of replica checks. `details_every`: steps between histograms
  // and images in event files.
  RunOptions run_options(const Ranks& position, const RunShape& shape, uint64_t steps, uint64_t details_every) const;
  // Buckets, micro-steps, loss scale and CUDA graph.
  TrainerOptions trainer_options(const RunShape& shape) const;
};

}  // namespace dtrain::cli
