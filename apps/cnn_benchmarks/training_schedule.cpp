// Number of steps and learning-rate schedule, by tf_cnn_benchmarks' rules.
#include "apps/cnn_benchmarks/training_schedule.h"

namespace dtrain::cnn_benchmarks {
namespace {

// Epochs of `samples` in `batches` batches of `batch`.
double epochs_of(int64_t batches, int64_t batch, uint64_t samples) {
  return static_cast<double>(batches) * static_cast<double>(batch) / static_cast<double>(samples);
}

}  // namespace

TrainingSchedule make_schedule(const Settings& settings, const DatasetSizes& sizes) {
  const Flags& f = settings.flags;
  const int64_t batch = settings.global_batch(), eval_batch = settings.global_eval_batch();
  TrainingSchedule plan;
  plan.num_batches = f.run.training_batches(sizes.training, batch);
  plan.total_steps = static_cast<uint64_t>(settings.warmup_steps + plan.num_batches);
  plan.num_epochs = epochs_of(plan.num_batches, batch, sizes.training);
  if (settings.evaluates()) plan.eval_batches = f.run.evaluation_batches(sizes.validation, eval_batch);
  if (settings.mode == RunMode::evaluation) {
    plan.num_batches = plan.eval_batches;
    plan.num_epochs = epochs_of(plan.eval_batches, eval_batch, sizes.validation);
  }
  plan.evaluates_after = f.mode.evaluates_after(sizes.training, batch);
  const double steps_per_epoch = static_cast<double>(sizes.training) / static_cast<double>(batch);
  const auto schedule = f.schedule.schedule(steps_per_epoch, plan.total_steps, batch);
  plan.schedule = schedule ? *schedule : f.model.default_schedule(settings.info, batch, steps_per_epoch);
  plan.schedule.validate();
  return plan;
}

}  // namespace dtrain::cnn_benchmarks
