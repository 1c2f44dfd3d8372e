// Builds a run's objects from its configuration.
#include "apps/cnn_benchmarks/session.h"

#include <fmt/format.h>

#include "apps/cli/vision.h"
#include "libdtrain/ops/pointwise.h"
#include "models/classifier_weights.h"

namespace dtrain::cnn_benchmarks {
namespace {

std::unique_ptr<Communicator> statistics_communicator(const Config& config, Group& group, Context& context) {
  if (!config.flags.ranks.sync_batch_norm) return nullptr;
  return make_communicator(group, context, {.queue = Queue::compute});
}

models::ClassifierOptions model_options(const Config& config, Communicator* statistics) {
  models::ClassifierOptions options = config.options;
  options.statistics = statistics;
  return options;
}

}  // namespace

Session::Session(Config run_config, Plan run_plan, Datasets run_datasets, Group& run_group,
                 const std::string& fault_text)
    : config(std::move(run_config)),
      plan(std::move(run_plan)),
      datasets(std::move(run_datasets)),
      group(run_group),
      faults(fault_text, group.rank(), group.size()),
      context(config.machine.make_context()),
      communicator(faults.around(make_communicator(group, *context, config.distribution.gradients), *context)),
      statistics(statistics_communicator(config, group, *context)),
      store(*context),
      model(models::make_classifier(store, config.info, model_options(config, statistics.get()))) {
  cli::Distribution& distribution = config.distribution;
  for (const cli::ResizeStage& stage : config.stages)
    DT_CHECK(stage.size == config.options.image_size ||
                 models::takes_images_of(*context, config.info, config.options, stage.size),
             "--progressive_resizing: ", config.info.name, " has other weights for images of ", stage.size, " pixels");
  peak = config.flags.performance.peak(config.machine, *context);
  store.allocate(config.flags.run.seed(), config.machine.compute());
  if (distribution.packs > 0) {
    const auto bytes = static_cast<int64_t>(store.grads().bytes());
    const int64_t pack = (bytes + distribution.packs - 1) / distribution.packs;
    distribution.buckets = {.bytes = pack, .last_bytes = pack};
  }
  if (config.flags.checkpoints.weights.empty()) return;
  const WeightReport report =
      models::load_classifier(store, config.info, config.flags.checkpoints.weights, Fault::checkpoint).report;
  weights_summary = report.summary();
  // A new classifier on top of trained layers is what weights are often for; to evaluate, all of them must be there.
  if (!config.trains() && !(report.missing.empty() && report.mismatched.empty()))
    throw Error(Fault::checkpoint, fmt::format("{}: does not fit {}: {}", config.flags.checkpoints.weights,
                                               config.info.name, weights_summary));
}

PixelNormalization Session::pixels() const {
  // The synthetic batch goes to the model as it is, as in tf_cnn_benchmarks.
  PixelNormalization pixels = config.synthetic() ? PixelNormalization{} : cli::normalization_of(config.pixels());
  pixels.dtype = config.machine.precision;
  pixels.channels = store.image_channels();
  return pixels;
}

}  // namespace dtrain::cnn_benchmarks
