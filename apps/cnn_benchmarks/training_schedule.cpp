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
  TrainingSchedule schedule;
  schedule.num_batches = f.run.training_batches(sizes.training, batch);
  schedule.total_steps = static_cast<uint64_t>(settings.warmup_steps + schedule.num_batches);
  schedule.num_epochs = epochs_of(schedule.num_batches, batch, sizes.training);
  if (settings.evaluates()) schedule.eval_batches = f.run.evaluation_batches(sizes.validation, eval_batch);
  if (settings.mode == RunMode::evaluation) {
    schedule.num_batches = schedule.eval_batches;
    schedule.num_epochs = epochs_of(schedule.eval_batches, eval_batch, sizes.validation);
  }
  schedule.evaluates_after = f.mode.evaluates_after(sizes.training, batch);
  const double steps_per_epoch = static_cast<double>(sizes.training) / static_cast<double>(batch);
  const auto learning_rate = f.schedule.schedule(steps_per_epoch, schedule.total_steps, batch);
  schedule.learning_rate =
      learning_rate ? *learning_rate : f.model.default_schedule(settings.info, batch, steps_per_epoch);
  schedule.learning_rate.validate();
  return schedule;
}

}  // namespace dtrain::cnn_benchmarks
