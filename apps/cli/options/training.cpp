#include "apps/cli/options/training.h"

namespace dtrain::cli {

ExplicitSettings TrainingFlags::explicit_settings(const FlagSet& flags) const {
  ExplicitSettings given = ranks.asked_for(flags);
  given.threads = machine.asks_for_threads();
  return given;
}

RunOptions TrainingFlags::resume_options(const Ranks& position) const {
  RunOptions options;
  options.chief = position.chief;
  checkpoints.apply(options);
  return options;
}

RunOptions TrainingFlags::run_options(const Ranks& position, const RunShape& shape, uint64_t steps,
                                      uint64_t details_every) const {
  RunOptions options = resume_options(position);
  options.batch = shape.batch;
  options.tune_buckets = shape.tune_buckets;
  options.cadence.total_steps = steps;
  options.cadence.show_every = static_cast<uint64_t>(display.display_every);
  options.cadence.verify_every = static_cast<uint64_t>(ranks.verify_weights_every);
  if (!checkpoints.train_dir.empty()) options.cadence.inspect_every = details_every;
  return options;
}

TrainerOptions TrainingFlags::trainer_options(const RunShape& shape) const {
  TrainerOptions options;
  options.buckets = shape.buckets;
  options.micro_steps = shape.micro_steps;
  machine.apply(options);
  return options;
}

}  // namespace dtrain::cli
