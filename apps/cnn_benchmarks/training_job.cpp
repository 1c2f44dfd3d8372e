#include "apps/cnn_benchmarks/training_job.h"

#include <algorithm>

#include <fmt/format.h>

#include "apps/cli/fine_tuning.h"
#include "apps/cli/messages.h"
#include "apps/cli/ranks.h"
#include "apps/cli/recorded_weights.h"
#include "apps/cli/vision.h"
#include "dtrain/io/remote_path.h"
#include "dtrain/models/classifier_weights.h"
#include "dtrain/ops/pointwise.h"

namespace dtrain::cnn_benchmarks {
namespace {

models::ClassifierOptions model_options(const Settings& settings, Communicator* statistics) {
  models::ClassifierOptions options = settings.options;
  options.statistics = statistics;
  return options;
}

models::Classifier make_model(const Settings& settings, ParameterStore& store, Communicator* statistics,
                              const ssd::Model* detector) {
  if (!detector) return models::make_classifier(store, settings.info, model_options(settings, statistics));
  return {.name = settings.info.name,
          .classes = settings.options.classes,
          .image_size = settings.options.image_size,
          .multiply_adds = detector->multiply_adds()};
}

}  // namespace

TrainingJob::TrainingJob(Settings job_settings, TrainingSchedule job_schedule, Datasets job_datasets, Group& job_group)
    : settings(std::move(job_settings)),
      schedule(std::move(job_schedule)),
      datasets(std::move(job_datasets)),
      group(job_group),
      faults(cli::injected_faults(group)),
      context(settings.machine.make_context()),
      communicator(faults.around(make_communicator(group, *context, settings.shape.gradients), *context)),
      statistics(settings.flags.ranks.sync_batch_norm ? make_communicator(group, *context, {.stream = Stream::compute})
                                                      : nullptr),
      store(*context),
      detector(settings.detects() ? std::make_unique<ssd::Model>(store, statistics.get()) : nullptr),
      model(make_model(settings, store, statistics.get(), detector.get())) {
  for (const cli::ResizeStage& stage : settings.stages)
    DT_CHECK(stage.size == settings.options.image_size ||
                 models::takes_images_of(*context, settings.info, settings.options, stage.size),
             "--progressive_resizing: ", settings.info.name, " has other weights for images of ", stage.size,
             " pixels");
  peak = settings.flags.performance.peak(settings.machine, *context);
  store.allocate(settings.flags.run.seed(), settings.machine.compute());
  if (settings.packs > 0) {
    const auto bytes = static_cast<int64_t>(store.grads().bytes());
    const int64_t pack = (bytes + settings.packs - 1) / settings.packs;
    settings.shape.buckets = {.bytes = pack, .last_bytes = pack};
  }
  if (detector) detector->normalize_by(pixels());
  const std::string& backbone = settings.flags.ssd.backbone_model_path;
  if (!backbone.empty()) weights_summary = detector->load_backbone(backbone) + " (backbone)";
  if (const std::string& weights = settings.flags.checkpoints.weights; !weights.empty())
    // A training may save a newer checkpoint while the ranks look.
    load_weights(group.broadcast(is_chief() ? weights_file(weights) : "", settings.ranks.chief, "path of the weights"));
  const cli::FineTuningFlags& fine_tuning = settings.flags.fine_tuning;
  note(cli::fine_tune(store, fine_tuning.freeze, fine_tuning.head_learning_rate_factor));
}

void TrainingJob::note(const std::string& text) const {
  if (is_chief() && !text.empty()) cli::print_message("note", text);
}

void TrainingJob::load_weights(const std::string& path) {
  const WeightReport report = detector ? dtrain::load_weights(store, path, Fault::checkpoint)
                                       : models::load_classifier(store, settings.info, path, Fault::checkpoint).report;
  weights_summary = fmt::format("{} ({})", shown_path(path), report.summary());
  if (is_chief()) cli::print_notices(report, path);
  if (settings.trains()) note(cli::initial_values(report));
  // Fine-tuning often replaces the classifier layer; evaluation needs all weights.
  if (!settings.trains() && !(report.missing.empty() && report.mismatched.empty()))
    throw Error(Fault::checkpoint, fmt::format("{}: does not fit {}: {}", path, settings.info.name, report.summary()));
}

TrainerOptions TrainingJob::trainer_options() const {
  TrainerOptions options = settings.flags.trainer_options(settings.shape);
  if (settings.all_reduces()) options.communicator = communicator.get();
  options.independent = settings.independent;
  options.equal_statistics = settings.flags.ranks.sync_batch_norm;
  options.seed = settings.flags.run.seed();
  return options;
}

RunOptions TrainingJob::run_options() {
  const Flags& f = settings.flags;
  RunOptions options = f.run_options(settings.ranks, settings.shape, schedule.total_steps, f.summaries.details_every());
  options.train_dir = resume_options(settings).train_dir;
  Cadence& cadence = options.cadence;
  cadence.warmup_steps = static_cast<uint64_t>(settings.warmup_steps);
  cadence.evaluate_after = schedule.evaluates_after;
  if (const auto epochs = f.checkpoints.save_model_epochs) {
    const double steps_per_epoch =
        static_cast<double>(datasets.sizes.training) / static_cast<double>(settings.global_batch());
    cadence.save_every_steps = std::max<uint64_t>(1, static_cast<uint64_t>(*epochs * steps_per_epoch));
  }
  if (f.mode.stop_at_top_1_accuracy)
    options.enough = [least = *f.mode.stop_at_top_1_accuracy](const Evaluation& evaluation) {
      return find_metric(evaluation.values, "top_1_accuracy").value_or(-1) >= least;  // unknown on some ranks
    };
  options.faults = &faults;
  return options;
}

PixelNormalization TrainingJob::pixels() const {
  // The synthetic batch is not preprocessed, as in tf_cnn_benchmarks.
  PixelNormalization pixels = settings.synthetic() ? PixelNormalization{} : cli::normalization_of(settings.pixels());
  pixels.dtype = settings.machine.precision;
  pixels.channels = store.image_channels();
  return pixels;
}

}  // namespace dtrain::cnn_benchmarks
