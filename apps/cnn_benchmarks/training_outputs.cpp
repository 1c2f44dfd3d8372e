#include "apps/cnn_benchmarks/training_outputs.h"

#include <fmt/format.h>

#include "apps/cli/loader_lanes.h"
#include "apps/cli/run_main.h"
#include "apps/cnn_benchmarks/run_options.h"
#include "apps/observers/benchmark_log.h"
#include "apps/observers/mlperf_log.h"

namespace dtrain::cnn_benchmarks {
namespace {

observers::BenchmarkLogOptions benchmark_log_options(const TrainingJob& job) {
  const Settings& settings = job.settings;
  const Flags& f = settings.flags;
  const bool evaluates = settings.mode == RunMode::evaluation;
  return {.folder = f.benchmark_log.benchmark_log_dir,
          .model = settings.info.name,
          .dataset = settings.dataset,
          .test_id = f.benchmark_log.benchmark_test_id,
          .version = cli::version(),
          .parameters = {{"model", settings.info.name},
                         {"dataset", settings.dataset},
                         {"mode", std::string(name_of(settings.mode))},
                         {"single_sess", f.distribution.variable_update == "distributed_all_reduce"},
                         {"devices", fmt::format("{} of {}", settings.ranks.size, settings.machine.device())},
                         {"batch_size", evaluates ? settings.global_eval_batch() : settings.global_batch()},
                         {"batch_size_per_device", evaluates ? settings.eval_batch : settings.batch},
                         {"num_batches", job.plan.num_batches},
                         {"num_epochs", job.plan.num_epochs},
                         {"data_format", f.tf.data_format},
                         {"rewrite_config", f.tf.rewriter_config},
                         {"optimizer", f.optimizer.optimizer}},
          .gpus = settings.machine.gpu ? settings.ranks.size : 0,
          .gpu = settings.machine.index,
          .speed = speed_options(settings),
          .global_batch = static_cast<double>(settings.global_batch())};
}

observers::MlperfLogOptions mlperf_options(const TrainingJob& job) {
  const Settings& settings = job.settings;
  const Flags& f = settings.flags;
  const bool evaluates = settings.mode == RunMode::training_and_evaluation;
  return {.seed = f.run.seed(),
          .global_batch = static_cast<double>(settings.global_batch()),
          .device_batch = settings.batch,
          .training_images = job.datasets.sizes.training,
          .validation_images = evaluates ? job.datasets.sizes.validation : 0,
          .image_size = settings.options.image_size,
          .classes = job.model.classes,
          .preprocessed = !settings.synthetic() && f.pixels.preprocessing == "tf_cnn",
          .mean = settings.pixels().scale().mean,
          .crops_by_boxes = !f.pixels.ml_perf,
          .optimizer = f.optimizer.optimizer,
          .momentum = f.optimizer.momentum,
          .weight_decay = f.optimizer.weight_decay,
          .evaluation_offset = f.mode.evaluation_offset(),
          .target = f.mode.stop_at_top_1_accuracy,
          .ends_with_evaluation = evaluates};
}

// The model garden's benchmark log and MLPerf's compliance log.
std::vector<std::unique_ptr<Observer>> logs_for_tools(const TrainingJob& job, cli::Log& log) {
  std::vector<std::unique_ptr<Observer>> logs;
  const Settings& settings = job.settings;
  const cli::BenchmarkLogFlags& flags = settings.flags.benchmark_log;
  if (!flags.benchmark_log_dir.empty()) {
    const auto notice = [&log](const std::string& text) { log.notice(text); };
    logs.push_back(std::make_unique<observers::BenchmarkLog>(benchmark_log_options(job), notice));
    if (settings.mode == RunMode::evaluation) logs.back()->begun({});
  }
  if (flags.ml_perf_compliance_logging && settings.trains()) {
    observers::MlperfLogOptions options = mlperf_options(job);
    options.line = [&log](const std::string& text) { log.line(text); };
    logs.push_back(std::make_unique<observers::MlperfLog>(std::move(options)));
  }
  return logs;
}

}  // namespace

TrainingOutputs::TrainingOutputs(TrainingJob& job, cli::Log& log, Observer* own_log)
    : tf_log_(log, log_options(job), *job.context, *job.communicator), log_(own_log != nullptr ? own_log : &tf_log_) {
  if (job.detector && own_log == nullptr) coco_log_.emplace(log);
  if (!job.is_chief()) return;
  const Flags& f = job.settings.flags;
  const auto notice = [&log](const std::string& text) { log.notice(text); };
  if (!f.display.metrics_file.empty()) metrics_.emplace(f.display.metrics_file, figure_options(job), notice);
  const bool keeps = job.settings.trains() && !f.checkpoints.train_dir.empty();
  if (keeps) config_.emplace(f.checkpoints.train_dir, job.settings.text, notice);
  if (keeps && f.summaries.wanted()) events_.emplace(event_options(job), notice);
  if (job.settings.mode == RunMode::evaluation && !f.mode.eval_dir.empty())
    events_.emplace(evaluation_event_options(job), notice).begun({});
  others_ = logs_for_tools(job, log);
  if (job.settings.trains()) live_.emplace(f.display, live_options(job), *job.context, log);
  if (!f.tracing.wanted()) return;
  tracing_.emplace(tracing_options(job, log), *job.context).listen_to(*job.communicator);
  job.datasets.report = cli::loader_lanes(tracing_->span_listener());
}

std::vector<Observer*> TrainingOutputs::all() {
  std::vector<Observer*> observers;
  if (coco_log_) observers.push_back(&*coco_log_);
  observers.push_back(log_);
  if (config_) observers.push_back(&*config_);
  if (metrics_) observers.push_back(&*metrics_);
  if (events_) observers.push_back(&*events_);
  for (const auto& other : others_) observers.push_back(other.get());
  if (tracing_) observers.push_back(&*tracing_);
  if (live_) std::ranges::copy(live_->all(), std::back_inserter(observers));
  return observers;
}

}  // namespace dtrain::cnn_benchmarks
