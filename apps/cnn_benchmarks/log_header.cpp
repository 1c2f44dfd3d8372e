#include "apps/cnn_benchmarks/log_header.h"

#include <fmt/format.h>

namespace dtrain::cnn_benchmarks {
namespace {

const char* name_in_1_12(RunMode mode) {
  switch (mode) {
    case RunMode::training:
      return "BenchmarkMode.TRAIN";
    case RunMode::training_and_evaluation:
      return "BenchmarkMode.TRAIN_AND_EVAL";
    case RunMode::evaluation:
      return "BenchmarkMode.EVAL";
    case RunMode::forward_only:
      return "BenchmarkMode.FORWARD_ONLY";
  }
  return "";
}

}  // namespace

void print_header(cli::Log& log, const Settings& settings, const TrainingSchedule& schedule,
                  const std::string& version) {
  const Flags& f = settings.flags;
  const std::string& update = f.distribution.variable_update;
  const bool horovod = update == "horovod", old = f.tf.compatible_with == "1.12";
  const int64_t batch = settings.mode == RunMode::evaluation ? settings.eval_batch : settings.shape.batch;
  const int64_t global = settings.mode == RunMode::evaluation ? settings.global_eval_batch() : settings.global_batch();
  std::string devices;
  for (int rank = 0; rank < settings.ranks.size; ++rank)
    devices +=
        fmt::format("{}'{}/{}:{}'", rank > 0 ? ", " : "", horovod ? "horovod" : "", settings.machine.device(), rank);
  log.line(fmt::format("dtrain:      {}", version));
  log.line(fmt::format("Model:       {}", settings.info.name == "lenet" ? "lenet5" : settings.info.name));
  log.line(fmt::format("Dataset:     {}{}", settings.dataset, settings.synthetic() ? " (synthetic)" : ""));
  log.line(fmt::format("Mode:        {}", old ? name_in_1_12(settings.mode) : name_of(settings.mode)));
  log.line(fmt::format("SingleSess:  {}", update == "distributed_all_reduce" ? "True" : "False"));
  log.line(fmt::format("Batch size:  {} global", global));
  log.line(fmt::format("             {} per device", batch));
  if (f.tf.batch_group_size > 1)
    log.line(fmt::format("             {} batches per prepocessing group", f.tf.batch_group_size));  // as there
  log.line(fmt::format("Num batches: {}", schedule.num_batches));
  log.line(fmt::format("Num epochs:  {:.2f}", schedule.num_epochs));
  log.line(fmt::format("Devices:     [{}]", devices));
  if (!old) log.line("NUMA bind:   False");
  log.line(fmt::format("Data format: {}", f.tf.data_format));
  if (!f.tf.rewriter_config.empty()) log.line(fmt::format("RewriterConfig: {}", f.tf.rewriter_config));
  log.line(fmt::format("Optimizer:   {}", f.optimizer.optimizer));
  log.line(fmt::format("Variables:   {}", update));
  if (update == "replicated" || update.ends_with("all_reduce"))
    log.line(fmt::format("AllReduce:   {}",
                         f.distribution.all_reduce_spec.empty() ? "None" : f.distribution.all_reduce_spec));
  if (!f.distribution.job_name.empty()) log.line("Sync:        True");
  if (horovod && !f.distribution.horovod_device.empty())
    log.line(fmt::format("Horovod on:  {}", f.distribution.horovod_device));
  log.line("==========");
}

}  // namespace dtrain::cnn_benchmarks
