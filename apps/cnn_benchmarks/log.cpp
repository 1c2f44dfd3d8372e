// Formats: see tf_cnn_benchmarks' print_info and benchmark_one_step.
#include "apps/cnn_benchmarks/log.h"

#include <cerrno>
#include <system_error>
#include <utility>

#include <fmt/format.h>

namespace dtrain::cnn_benchmarks {

void Log::line(const std::string& text) {
  if (!speaks_) return;
  out_ << text << std::endl;
  if (out_) return;
  const int cause = errno;
  out_.clear();
  if (!std::exchange(lost_, true))
    notice(fmt::format("the log: {}; the run goes on, lines may be missing", std::generic_category().message(cause)));
}

void Log::notice(const std::string& text) {
  if (speaks_) notices_ << "note: " << text << std::endl;
}

void Log::notices(Context& context) {
  for (const std::string& text : context.notices()) notice(text);
  context.notices().clear();
}

void Log::header(const Config& config, const Plan& plan, const std::string& version) {
  const Flags& f = config.flags;
  const bool horovod = f.variable_update == "horovod";
  const int64_t batch = config.mode == RunMode::evaluation ? config.eval_batch : config.batch;
  const int64_t global = config.mode == RunMode::evaluation ? config.global_eval_batch() : config.global_batch();
  std::string devices;
  for (int rank = 0; rank < config.ranks.size; ++rank)
    devices += fmt::format("{}'{}/{}:{}'", rank > 0 ? ", " : "", horovod ? "horovod" : "", f.device, rank);
  line(fmt::format("dtrain:      {}", version));
  line(fmt::format("Model:       {}", config.info.name == "lenet" ? "lenet5" : config.info.name));
  line(fmt::format("Dataset:     {}{}", config.dataset, config.synthetic() ? " (synthetic)" : ""));
  line(fmt::format("Mode:        {}", name_of(config.mode)));
  line("SingleSess:  False");
  line(fmt::format("Batch size:  {} global", global));
  line(fmt::format("             {} per device", batch));
  line(fmt::format("Num batches: {}", plan.num_batches));
  line(fmt::format("Num epochs:  {:.2f}", plan.num_epochs));
  line(fmt::format("Devices:     [{}]", devices));
  line("NUMA bind:   False");
  line(fmt::format("Data format: {}", f.data_format));
  line(fmt::format("Optimizer:   {}", f.optimizer));
  line(fmt::format("Variables:   {}", f.variable_update));
  if (f.variable_update == "replicated" || f.variable_update.ends_with("all_reduce"))
    line(fmt::format("AllReduce:   {}", f.all_reduce_spec.empty() ? "None" : f.all_reduce_spec));
  if (!f.job_name.empty()) line("Sync:        True");
  if (horovod && !f.horovod_device.empty()) line(fmt::format("Horovod on:  {}", f.horovod_device));
  line("==========");
}

void Log::columns(const std::string& loss, bool accuracies) {
  line(fmt::format("Step\tImg/sec\t{}{}", loss, accuracies ? "\ttop_1_accuracy\ttop_5_accuracy" : ""));
}

void Log::step(int64_t step, const Throughput& speed, double loss, const std::optional<Accuracy>& accuracy) {
  std::string text = fmt::format("{}\timages/sec: {:.1f} +/- {:.1f} (jitter = {:.1f})\t{:.3f}", step, speed.speed(),
                                 speed.uncertainty(), speed.jitter(), loss);
  if (accuracy) text += fmt::format("\t{:.3f}\t{:.3f}", accuracy->top_1, accuracy->top_5);
  line(text);
}

void Log::evaluation_step(int64_t step, double examples_per_sec) {
  line(fmt::format("{}\t{:.1f} examples/sec", step, examples_per_sec));
}

void Log::accuracy(const Accuracy& accuracy) {
  line(fmt::format("Accuracy @ 1 = {:.4f} Accuracy @ 5 = {:.4f} [{} examples]", accuracy.top_1, accuracy.top_5,
                   accuracy.examples));
}

void Log::total(double images_per_sec) {
  const std::string rule(64, '-');
  line(rule);
  line(fmt::format("total images/sec: {:.2f}", images_per_sec));
  line(rule);
}

}  // namespace dtrain::cnn_benchmarks
