#include "apps/cnn_benchmarks/log_header.h"

#include <fmt/format.h>

namespace dtrain::cnn_benchmarks {

void print_header(cli::Log& log, const Config& config, const Plan& plan, const std::string& version) {
  const Flags& f = config.flags;
  const bool horovod = f.distribution.variable_update == "horovod";
  const int64_t batch = config.mode == RunMode::evaluation ? config.eval_batch : config.batch;
  const int64_t global = config.mode == RunMode::evaluation ? config.global_eval_batch() : config.global_batch();
  std::string devices;
  for (int rank = 0; rank < config.ranks.size; ++rank)
    devices +=
        fmt::format("{}'{}/{}:{}'", rank > 0 ? ", " : "", horovod ? "horovod" : "", config.machine.device(), rank);
  log.line(fmt::format("dtrain:      {}", version));
  log.line(fmt::format("Model:       {}", config.info.name == "lenet" ? "lenet5" : config.info.name));
  log.line(fmt::format("Dataset:     {}{}", config.dataset, config.synthetic() ? " (synthetic)" : ""));
  log.line(fmt::format("Mode:        {}", name_of(config.mode)));
  log.line("SingleSess:  False");
  log.line(fmt::format("Batch size:  {} global", global));
  log.line(fmt::format("             {} per device", batch));
  log.line(fmt::format("Num batches: {}", plan.num_batches));
  log.line(fmt::format("Num epochs:  {:.2f}", plan.num_epochs));
  log.line(fmt::format("Devices:     [{}]", devices));
  log.line("NUMA bind:   False");
  log.line(fmt::format("Data format: {}", f.tf.data_format));
  log.line(fmt::format("Optimizer:   {}", f.optimizer.optimizer));
  log.line(fmt::format("Variables:   {}", f.distribution.variable_update));
  if (f.distribution.variable_update == "replicated" || f.distribution.variable_update.ends_with("all_reduce"))
    log.line(fmt::format("AllReduce:   {}",
                         f.distribution.all_reduce_spec.empty() ? "None" : f.distribution.all_reduce_spec));
  if (!f.distribution.job_name.empty()) log.line("Sync:        True");
  if (horovod && !f.distribution.horovod_device.empty())
    log.line(fmt::format("Horovod on:  {}", f.distribution.horovod_device));
  log.line("==========");
}

}  // namespace dtrain::cnn_benchmarks
