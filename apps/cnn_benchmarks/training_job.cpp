// Creates a run's objects from its configuration.
#include "apps/cnn_benchmarks/training_job.h"

#include <fmt/format.h>

#include "apps/cli/recorded_weights.h"
#include "apps/cli/vision.h"
#include "libdtrain/ops/pointwise.h"
#include "models/classifier_weights.h"

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

TrainingJob::TrainingJob(Settings run_config, TrainingSchedule run_plan, Datasets run_datasets, Group& run_group,
                         const std::string& fault_text)
    : settings(std::move(run_config)),
      plan(std::move(run_plan)),
      datasets(std::move(run_datasets)),
      group(run_group),
      faults(fault_text, group.rank(), group.size()),
      context(settings.machine.make_context()),
      communicator(faults.around(make_communicator(group, *context, settings.distribution.gradients), *context)),
      statistics(settings.flags.ranks.sync_batch_norm ? make_communicator(group, *context, {.stream = Stream::compute})
                                                      : nullptr),
      store(*context),
      detector(settings.detects() ? std::make_unique<ssd::Model>(store, statistics.get()) : nullptr),
      model(make_model(settings, store, statistics.get(), detector.get())) {
  cli::Distribution& distribution = settings.distribution;
  for (const cli::ResizeStage& stage : settings.stages)
    DT_CHECK(stage.size == settings.options.image_size ||
                 models::takes_images_of(*context, settings.info, settings.options, stage.size),
             "--progressive_resizing: ", settings.info.name, " has other weights for images of ", stage.size,
             " pixels");
  peak = settings.flags.performance.peak(settings.machine, *context);
  store.allocate(settings.flags.run.seed(), settings.machine.compute());
  if (distribution.packs > 0) {
    const auto bytes = static_cast<int64_t>(store.grads().bytes());
    const int64_t pack = (bytes + distribution.packs - 1) / distribution.packs;
    distribution.buckets = {.bytes = pack, .last_bytes = pack};
  }
  if (detector) detector->normalize_by(pixels());
  const std::string& backbone = settings.flags.ssd.backbone_model_path;
  if (!backbone.empty()) weights_summary = detector->load_backbone(backbone) + " (backbone)";
  if (const std::string& weights = settings.flags.checkpoints.weights; !weights.empty())
    load_weights(weights_file(weights));
}

void TrainingJob::load_weights(const std::string& path) {
  const WeightReport report = detector ? dtrain::load_weights(store, path, Fault::checkpoint)
                                       : models::load_classifier(store, settings.info, path, Fault::checkpoint).report;
  weights_summary = fmt::format("{} ({})", path, report.summary());
  if (is_chief()) cli::print_notices(report, path);
  // Fine-tuning often replaces the classifier layer; evaluation needs all weights.
  if (!settings.trains() && !(report.missing.empty() && report.mismatched.empty()))
    throw Error(Fault::checkpoint, fmt::format("{}: does not fit {}: {}", path, settings.info.name, report.summary()));
}

PixelNormalization TrainingJob::pixels() const {
  // The synthetic batch is not preprocessed, as in tf_cnn_benchmarks.
  PixelNormalization pixels = settings.synthetic() ? PixelNormalization{} : cli::normalization_of(settings.pixels());
  pixels.dtype = settings.machine.precision;
  pixels.channels = store.image_channels();
  return pixels;
}

}  // namespace dtrain::cnn_benchmarks
