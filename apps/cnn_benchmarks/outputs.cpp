#include "apps/cnn_benchmarks/outputs.h"

#include <fmt/format.h>

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

}  // namespace

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

}  // namespace dtrain::cnn_benchmarks
