#include "apps/mask_rcnn/model.h"

#include "apps/mask_rcnn/loaded_detector.h"
#include "libdtrain/ops/blank_outside.h"

namespace dtrain::mask_rcnn {
namespace {

PixelNormalization normalization_of(const DataSettings& settings, const cli::Machine& machine) {
  PixelNormalization pixels;
  pixels.dtype = machine.precision;
  for (int color = 0; color < 3; ++color) {
    pixels.mean[color] = settings.mean[color];
    pixels.scale[color] = 1 / settings.deviation[color];
  }
  return pixels;
}

ComputeOptions compute_options(const cli::Machine& machine, bool gradients) {
  ComputeOptions options = machine.compute();
  options.gradients = gradients;
  return options;
}

std::unique_ptr<Communicator> statistics_communicator(const Settings& settings, Group* ranks, Context& context) {
  if (!settings.synchronised_norms || ranks == nullptr) return nullptr;
  return make_communicator(*ranks, context, {.stream = Stream::compute});
}

models::DetectorOptions detector_options(const Settings& settings, Communicator* statistics) {
  models::DetectorOptions options = settings.detector;
  options.backbone.batch_norm.communicator = statistics;
  return options;
}

}  // namespace

Model::Model(const Settings& settings, const cli::Machine& machine, uint64_t seed, bool gradients, Group* ranks)
    : context(machine.make_context()),
      statistics(statistics_communicator(settings, ranks, *context)),
      store(*context),
      detector(store, detector_options(settings, statistics.get())),
      normalization_(normalization_of(settings.data, machine)) {
  store.allocate(seed, compute_options(machine, gradients));
  models::freeze(store, settings.detector);
  normalization_.channels = store.image_channels();
}

WeightReport Model::load(const std::string& path, bool complete) {
  WeightReport report = models::load_detector(store, path, Fault::checkpoint).report;
  if (complete) require_complete(report, path);
  return report;
}

Loss Model::loss(Tape& tape, const detection::DeviceBatch& batch) {
  return detector.loss(tape, canvas(batch.images().dim(1), batch.images().dim(2)),
                       pixels(tape, batch.images(), batch.sizes()), batch.truth());
}

models::Detections Model::detect(Tape& tape, const detection::DeviceBatch& batch) {
  return detector.detect(tape, canvas(batch.images().dim(1), batch.images().dim(2)),
                         pixels(tape, batch.images(), batch.sizes()), batch.sizes());
}

Var Model::pixels(Tape& tape, const Tensor& images, const Tensor& sizes) const {
  const Tensor normalized = normalize_pixels(*context, images, normalization_);
  blank_outside(*context, normalized, sizes);
  return tape.constant(normalized);
}

const models::Canvas& Model::canvas(int64_t height, int64_t width) {
  const std::pair key(height, width);
  const auto found = canvases_.find(key);
  if (found != canvases_.end()) return found->second;
  return canvases_.emplace(key, detector.canvas(*context, height, width)).first->second;
}

}  // namespace dtrain::mask_rcnn
