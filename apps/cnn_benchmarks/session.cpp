// Builds a run's objects from its configuration.
#include "apps/cnn_benchmarks/session.h"

#include <fmt/format.h>

#include "apps/cli/run_main.h"
#include "apps/cnn_benchmarks/elastic.h"
#include "libdtrain/ops/pointwise.h"
#include "libdtrain/train/weights.h"

namespace dtrain::cnn_benchmarks {
namespace {

std::unique_ptr<Communicator> statistics_communicator(const Config& config, Group& group, Context& context) {
  if (!config.flags.sync_batch_norm) return nullptr;
  return make_communicator(group, context, {.queue = Queue::compute});
}

models::ClassifierOptions model_options(const Config& config, Communicator* statistics) {
  models::ClassifierOptions options = config.options;
  options.statistics = statistics;
  return options;
}

}  // namespace

Session::Session(Config run_config, Plan run_plan, Datasets run_datasets, Group& run_group)
    : config(std::move(run_config)),
      plan(std::move(run_plan)),
      datasets(std::move(run_datasets)),
      group(run_group),
      faults(group.rank(), group.size()),
      context(config.machine.make_context()),
      communicator(faults.around(make_communicator(group, *context, config.distribution.gradients), *context)),
      statistics(statistics_communicator(config, group, *context)),
      store(*context),
      model(models::make_classifier(store, config.info, model_options(config, statistics.get()))) {
  Distribution& distribution = config.distribution;
  store.allocate(static_cast<uint64_t>(config.flags.tf_random_seed), config.machine.compute());
  if (distribution.packs > 0) {
    const auto bytes = static_cast<int64_t>(store.grads().bytes());
    const int64_t pack = (bytes + distribution.packs - 1) / distribution.packs;
    distribution.buckets = {.bytes = pack, .last_bytes = pack};
  }
  if (config.flags.weights.empty()) return;
  const WeightReport report = load_weights(store, config.flags.weights, Fault::checkpoint);
  weights_summary = report.summary();
  // A new classifier on top of trained layers is what weights are often for; to evaluate, all of them must be there.
  const bool fits = config.trains() ? !report.loaded.empty() : report.missing.empty() && report.mismatched.empty();
  if (!fits)
    throw Error(Fault::checkpoint,
                fmt::format("{}: does not fit {}: {}", config.flags.weights, config.info.name, weights_summary));
}

PixelNormalization Session::pixels() const {
  // The synthetic batch goes to the model as it is, as in tf_cnn_benchmarks.
  PixelNormalization pixels = config.synthetic() ? PixelNormalization{} : cli::normalization_of(config.pixels());
  pixels.dtype = config.machine.precision;
  pixels.channels = store.image_channels();
  return pixels;
}

Classification Session::forward(Tape& tape, const data::Batch& batch) const {
  SoftmaxCrossEntropyOptions options;
  if (tape.training()) options.label_smoothing = static_cast<float>(config.flags.label_smoothing);
  const Tensor images = config.synthetic() ? batch["images"] : normalize_pixels(*context, batch["images"], pixels());
  return softmax_cross_entropy(tape, model.forward(tape, tape.constant(images)), batch["labels"], options);
}

TrainState Session::description() const {
  const Flags& f = config.flags;
  TrainState state;
  state.identity = {
      {"model", config.info.name},
      {"classes", fmt::format("{}", model.classes)},
      {"image size", fmt::format("{}", model.image_size)},
      {"data set", datasets.training ? datasets.training->identity() : "synthetic " + config.dataset},
      {"label offset", fmt::format("{}", f.label_offset)},
      {"preprocessing", f.preprocessing + (f.ml_perf ? ", ml_perf" : "")},
      {"distortions", !f.distortions           ? "none"
                      : f.distort_color_in_yiq ? "in YIQ"
                                               : "in HSV"},
      {"global batch", fmt::format("{}", config.global_batch())},
      {"optimizer", f.optimizer},
      {"batch norm", f.sync_batch_norm ? "over all ranks" : "per rank"},
      {"seed", fmt::format("{}", f.tf_random_seed)},
  };
  state.settings = {
      {"version", cli::version()},
      {"learning rate", plan.schedule.describe()},
      {"resize method", f.resize_method},
      {"JPEG decoder", f.jpeg_decoder},
      {"weight decay", fmt::format("{}", f.weight_decay)},
      {"label smoothing", fmt::format("{}", f.label_smoothing)},
      {"ranks", fmt::format("{}", config.ranks.size)},
      {"batch size of a rank", fmt::format("{}", config.batch)},
      {"sums over ranks", communicator->describe()},
      {"device", config.flags.device},
      {"precision", config.flags.precision},
      {"compute threads", fmt::format("{}", context->threads())},
  };
  if (config.ranks.size > 1)
    state.settings.merge(summation_settings(config.distribution.gradients, config.distribution.buckets));
  return state;
}

}  // namespace dtrain::cnn_benchmarks
