#include "apps/cnn_benchmarks/training_outputs.h"

#include <algorithm>
#include <filesystem>
#include <iterator>

#include <fmt/format.h>

#include "apps/cli/loader_lanes.h"
#include "apps/cli/run_main.h"
#include "apps/observers/benchmark_log.h"
#include "apps/observers/config_keeper.h"
#include "apps/observers/mlperf_log.h"
#include "apps/ssd/data.h"

namespace dtrain::cnn_benchmarks {
namespace {

observers::SpeedOptions speed_options(const Settings& settings) {
  const Flags& f = settings.flags;
  // With Horovod, tf_cnn_benchmarks' step lines report one process and its total all processes; else both report all.
  const int64_t ranks = f.distribution.variable_update == "horovod" ? settings.ranks.size : 1;
  observers::SpeedOptions options;
  options.samples_per_step = static_cast<double>(settings.global_batch() / ranks);
  options.ewma = f.display.moving_average();
  options.warmup_steps = static_cast<uint64_t>(settings.warmup_steps);
  return options;
}

// Forward, plus twice as much backward; a multiply-add counts as two.
double flops_of_step(const TrainingJob& job) {
  return 3 * 2 * static_cast<double>(job.model.multiply_adds) *
         static_cast<double>(job.settings.shape.batch * job.settings.shape.micro_steps);
}

observers::FigureOptions figure_options(const TrainingJob& job) {
  const Settings& settings = job.settings;
  return {.speed = speed_options(settings),
          .sums = settings.all_reduces(),
          .gpu = settings.machine.gpu,
          .loss_scale = settings.machine.precision == DType::f16,
          .total_steps = job.schedule.total_steps,
          .flops = settings.trains() ? flops_of_step(job) : 0,
          .peak = job.peak};
}

// The names of tf_cnn_benchmarks. None if not requested.
std::optional<observers::EventFilesOptions> event_options(const TrainingJob& job) {
  const Flags& f = job.settings.flags;
  const bool of_training = job.settings.trains() && !f.checkpoints.train_dir.empty() && f.summaries.wanted();
  const bool of_evaluation = job.settings.mode == RunMode::evaluation && !f.mode.eval_dir.empty();
  if (!of_training && !of_evaluation) return {};
  const bool base = f.tf.loss_type_to_report == "base_loss";
  observers::EventFilesOptions options;
  options.file.folder = of_training ? f.checkpoints.train_dir : f.mode.eval_dir;
  options.file.host = job.group.places()[static_cast<size_t>(job.group.rank())].host;
  options.every = static_cast<uint64_t>(f.summaries.save_summaries_steps);
  options.details_every = f.summaries.details_every();
  options.tags = {{"total_loss", base ? "" : "total_loss"}, {"loss", base ? "base_loss" : ""}, {"l2_loss", ""}};
  options.evaluation_tags["top_1_accuracy"] = "eval/Accuracy@1";
  options.evaluation_tags["top_5_accuracy"] = "eval/Accuracy@5";
  options.evaluation_tags["loss"] = "eval/loss";
  options.evaluation_tags["mean_average_precision"] = "eval/mAP";
  options.evaluation_tags["micro_f1"] = "eval/F1_micro";
  options.evaluation_tags["macro_f1"] = "eval/F1_macro";
  for (const std::string& name : ssd::score_names()) options.evaluation_tags[name] = "eval/" + name;
  options.trains = of_training;
  options.class_names = job.datasets.class_names;
  if (of_training) return options;
  options.file.most_pending = 1;  // the next evaluation may be hours away
  std::error_code failure;        // writing reports the error
  std::filesystem::create_directories(options.file.folder, failure);
  return options;
}

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
                         {"batch_size_per_device", evaluates ? settings.eval_batch : settings.shape.batch},
                         {"num_batches", job.schedule.num_batches},
                         {"num_epochs", job.schedule.num_epochs},
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
          .device_batch = settings.shape.batch,
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

// The flags beside the checkpoints, the model garden's benchmark log, and MLPerf's compliance log, as requested.
std::vector<std::unique_ptr<Observer>> other_files(const TrainingJob& job, cli::Log& log) {
  std::vector<std::unique_ptr<Observer>> files;
  const Settings& settings = job.settings;
  const cli::BenchmarkLogFlags& flags = settings.flags.benchmark_log;
  const std::string& train_dir = settings.flags.checkpoints.train_dir;
  const auto notice = [&log](const std::string& text) { log.notice(text); };
  if (settings.trains() && !train_dir.empty())
    files.push_back(std::make_unique<observers::ConfigKeeper>(train_dir, settings.text, notice));
  if (!flags.benchmark_log_dir.empty()) {
    files.push_back(std::make_unique<observers::BenchmarkLog>(benchmark_log_options(job), notice));
    if (settings.mode == RunMode::evaluation) files.back()->begun({});
  }
  if (flags.ml_perf_compliance_logging && settings.trains()) {
    observers::MlperfLogOptions options = mlperf_options(job);
    options.line = [&log](const std::string& text) { log.line(text); };
    files.push_back(std::make_unique<observers::MlperfLog>(std::move(options)));
  }
  return files;
}

}  // namespace

observers::TfCnnLogOptions log_options(const TrainingJob& job) {
  const Settings& settings = job.settings;
  const Flags& f = settings.flags;
  observers::TfCnnLogOptions options;
  options.speed = speed_options(settings);
  options.global_batch = static_cast<double>(settings.global_batch());
  options.base_loss = f.tf.loss_type_to_report == "base_loss";
  options.accuracies = (f.tf.print_training_accuracy || f.mode.forward_only) && !settings.multi_label;
  options.trains = settings.trains();
  options.ends_with_evaluation = settings.mode == RunMode::training_and_evaluation;
  options.stop_at_top_1 = f.mode.stop_at_top_1_accuracy;
  if (!job.weights_summary.empty()) options.weights_line = fmt::format("Weights:     {}", job.weights_summary);
  options.machine = settings.machine;
  options.sums = settings.all_reduces();
  options.cuda_graph = settings.machine.gpu && f.machine.cuda_graph;
  options.flops = flops_of_step(job);
  if (job.is_chief()) options.peak = job.peak;
  options.stated_peak = f.performance.peak_tflops.has_value();
  if (f.performance.display_eta) options.eta_of = job.schedule.total_steps;
  return options;
}

TrainingOutputs::TrainingOutputs(TrainingJob& job, cli::Log& log, Observer* own_log)
    : tf_log_(log, log_options(job), *job.context, *job.communicator), log_(own_log != nullptr ? own_log : &tf_log_) {
  if (job.detector && own_log == nullptr) coco_log_.emplace(log);
  if (!job.is_chief()) return;
  const Settings& settings = job.settings;
  other_files_ = other_files(job, log);
  telemetry_.emplace(settings.flags,
                     observers::TelemetryOptions{.program = "dtrain-cnn-benchmarks",
                                                 .model = settings.info.name,
                                                 .figures = figure_options(job),
                                                 .events = event_options(job),
                                                 .total_steps = job.schedule.total_steps,
                                                 .precision = settings.machine.precision,
                                                 .trains = settings.trains()},
                     *job.context, *job.communicator, log);
  if (settings.mode == RunMode::evaluation && telemetry_->events() != nullptr) telemetry_->events()->begun({});
  job.datasets.report = cli::loader_lanes(telemetry_->span_listener());
}

std::vector<Observer*> TrainingOutputs::observers() {
  std::vector<Observer*> all;
  if (coco_log_) all.push_back(&*coco_log_);
  all.push_back(log_);
  for (const auto& file : other_files_) all.push_back(file.get());
  if (telemetry_) std::ranges::copy(telemetry_->all(), std::back_inserter(all));
  return all;
}

}  // namespace dtrain::cnn_benchmarks
