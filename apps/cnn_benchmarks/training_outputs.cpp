#include "apps/cnn_benchmarks/training_outputs.h"

#include <fmt/format.h>

#include "apps/cli/loader_lanes.h"
#include "apps/cli/run_main.h"
#include "apps/cnn_benchmarks/run_options.h"
#include "apps/observers/benchmark_log.h"
#include "apps/observers/mlperf_log.h"

namespace dtrain::cnn_benchmarks {
namespace {

observers::BenchmarkLogOptions benchmark_log_options(const Session& session) {
  const Config& config = session.config;
  const Flags& f = config.flags;
  const bool evaluates = config.mode == RunMode::evaluation;
  return {.folder = f.benchmark_log.benchmark_log_dir,
          .model = config.info.name,
          .dataset = config.dataset,
          .test_id = f.benchmark_log.benchmark_test_id,
          .version = cli::version(),
          .parameters = {{"model", config.info.name},
                         {"dataset", config.dataset},
                         {"mode", std::string(name_of(config.mode))},
                         {"single_sess", f.distribution.variable_update == "distributed_all_reduce"},
                         {"devices", fmt::format("{} of {}", config.ranks.size, config.machine.device())},
                         {"batch_size", evaluates ? config.global_eval_batch() : config.global_batch()},
                         {"batch_size_per_device", evaluates ? config.eval_batch : config.batch},
                         {"num_batches", session.plan.num_batches},
                         {"num_epochs", session.plan.num_epochs},
                         {"data_format", f.tf.data_format},
                         {"rewrite_config", f.tf.rewriter_config},
                         {"optimizer", f.optimizer.optimizer}},
          .gpus = config.machine.gpu ? config.ranks.size : 0,
          .gpu = config.machine.index,
          .speed = speed_options(config),
          .global_batch = static_cast<double>(config.global_batch())};
}

observers::MlperfLogOptions mlperf_options(const Session& session) {
  const Config& config = session.config;
  const Flags& f = config.flags;
  const bool evaluates = config.mode == RunMode::training_and_evaluation;
  return {.seed = f.run.seed(),
          .global_batch = static_cast<double>(config.global_batch()),
          .device_batch = config.batch,
          .training_images = session.datasets.sizes.training,
          .validation_images = evaluates ? session.datasets.sizes.validation : 0,
          .image_size = config.options.image_size,
          .classes = session.model.classes,
          .preprocessed = !config.synthetic() && f.pixels.preprocessing == "tf_cnn",
          .mean = config.pixels().scale().mean,
          .crops_by_boxes = !f.pixels.ml_perf,
          .optimizer = f.optimizer.optimizer,
          .momentum = f.optimizer.momentum,
          .weight_decay = f.optimizer.weight_decay,
          .evaluation_offset = f.mode.evaluation_offset(),
          .target = f.mode.stop_at_top_1_accuracy,
          .ends_with_evaluation = evaluates};
}

// The model garden's benchmark log and MLPerf's compliance log.
std::vector<std::unique_ptr<Observer>> logs_for_tools(const Session& session, cli::Log& log) {
  std::vector<std::unique_ptr<Observer>> logs;
  const Config& config = session.config;
  const cli::BenchmarkLogFlags& flags = config.flags.benchmark_log;
  if (!flags.benchmark_log_dir.empty()) {
    const auto notice = [&log](const std::string& text) { log.notice(text); };
    logs.push_back(std::make_unique<observers::BenchmarkLog>(benchmark_log_options(session), notice));
    if (config.mode == RunMode::evaluation) logs.back()->begun({});
  }
  if (flags.ml_perf_compliance_logging && config.trains()) {
    observers::MlperfLogOptions options = mlperf_options(session);
    options.line = [&log](const std::string& text) { log.line(text); };
    logs.push_back(std::make_unique<observers::MlperfLog>(std::move(options)));
  }
  return logs;
}

}  // namespace

RunObservers::RunObservers(Session& session, cli::Log& log, Observer* own_log)
    : tf_log_(log, log_options(session), *session.context, *session.communicator),
      log_(own_log != nullptr ? own_log : &tf_log_) {
  if (session.detector && own_log == nullptr) coco_log_.emplace(log);
  if (!session.is_chief()) return;
  const Flags& f = session.config.flags;
  const auto notice = [&log](const std::string& text) { log.notice(text); };
  if (!f.display.metrics_file.empty()) metrics_.emplace(f.display.metrics_file, figure_options(session), notice);
  const bool keeps = session.config.trains() && !f.checkpoints.train_dir.empty();
  if (keeps) config_.emplace(f.checkpoints.train_dir, session.config.text, notice);
  if (keeps && f.summaries.wanted()) events_.emplace(event_options(session), notice);
  if (session.config.mode == RunMode::evaluation && !f.mode.eval_dir.empty())
    events_.emplace(evaluation_event_options(session), notice).begun({});
  others_ = logs_for_tools(session, log);
  if (session.config.trains()) live_.emplace(f.display, live_options(session), *session.context, log);
  if (!f.tracing.wanted()) return;
  tracing_.emplace(tracing_options(session, log), *session.context).listen_to(*session.communicator);
  session.datasets.report = cli::loader_lanes(tracing_->span_listener());
}

std::vector<Observer*> RunObservers::all() {
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
