// The engine's side of detector.py and detector_variants.py: detections, losses and gradients of a detector with
// torchvision's conventions.
//   parity_detector BATCH FOLDER cpu|gpu [cascade|c4|gn]
// BATCH holds `images` [n, h, w, 3], normalised and padded, `sizes` [n, 2], `counts` [n], `boxes` [n, g, 4], `classes`
// [n, g], `run_ends` [n, r] and `run_begins` [n, g + 1]. FOLDER holds weights.safetensors and receives
// results.safetensors (maps `P2` ..., `proposals` and `proposal_counts`, `detected_*`, `losses`) and
// gradients.safetensors.
#include <cstdio>

#include "dtrain/models/detection/detector.h"
#include "dtrain/models/detection/presets.h"
#include "dtrain/train/weights.h"
#include "tests/parity/tensors.h"

namespace dtrain {
namespace {

std::vector<float> on_host(Context& context, const Tensor& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.count()));
  context.download(tensor, values.data(), "parity");
  return values;
}

void detect(Context& context, const models::Detector& detector, const models::Canvas& canvas, const Tensor& images,
            const Tensor& sizes, TensorFile& results) {
  Tape tape(context, Mode::eval);
  const std::vector<Var> maps = detector.features(tape, tape.constant(images));
  for (size_t level = 0; level < maps.size(); ++level)
    results.add(context, "P" + std::to_string(level + 2), maps[level].value);
  const models::Proposals proposals = detector.rpn().propose(context, detector.rpn()(tape, maps), canvas, sizes, false);
  results.add(context, "proposals", proposals.boxes);
  results.add(context, "proposal_counts", proposals.counts);
  const models::Detections found = detector.detect(tape, canvas, tape.constant(images), sizes);
  results.add(context, "detected_boxes", found.boxes);
  results.add(context, "detected_scores", found.scores);
  results.add(context, "detected_classes", found.classes);
  results.add(context, "detected_counts", found.counts);
  if (found.masks) results.add(context, "detected_masks", found.masks);
}

void train(ParameterStore& store, const models::Detector& detector, const models::Canvas& canvas, const Tensor& images,
           const models::DetectionTruth& truth, const std::string& folder, TensorFile& results) {
  Context& context = store.context();
  Tape tape(context);
  const Loss loss = detector.loss(tape, canvas, tape.constant(images), truth);
  std::vector<float> losses = on_host(context, loss.total.value);
  for (const Metric& metric : loss.metrics) losses.push_back(on_host(context, metric.sum)[0]);
  results.add("losses", losses);
  tape.backward(loss.total, &store);
  AtomicFile file(folder + "/gradients.safetensors");
  const std::vector<float> gradients = on_host(context, store.grads());
  write_weights(file.output(), store, gradients.data(), on_host(context, store.buffer_values()).data(), 0);
  file.commit();
}

void normalise_by_groups(models::DetectorOptions& options) {
  options.freeze_at = 0;
  options.freeze_norms = false;
  options.backbone.norm = models::ConvNorm::group;
  options.pyramid_norm = options.box.group_norm = options.mask.group_norm = true;
  options.box.norm_after_relu = options.mask.norm_after_relu = true;
  options.box.convolutions = 4;
  options.box.linear_layers = 1;
}

models::DetectorOptions options_of(const std::string& form) {
  models::DetectorOptions options = models::detector_preset("torchvision").options;
  options.detection.per_image = 20;
  options.rpn.training = options.rpn.evaluation = {.per_level = 200, .total = 100};
  if (!form.empty()) {  // PyTorch computes each region of these in double precision
    options.rpn.training = options.rpn.evaluation = {.per_level = 60, .total = 20};
    options.box.batch = 20, options.box.positives = 5;
  }
  options.c4.training = options.c4.evaluation = options.rpn.training;
  options.cascade = form == "cascade";
  options.pyramid = form != "c4";
  if (form == "gn") normalise_by_groups(options);
  return options;
}

void run(const std::string& batch_path, const std::string& folder, const std::string& device, const std::string& form) {
  const auto context = parity_context(device);
  const SafetensorsFile batch(batch_path);
  const auto read = [&](const char* name) { return read_tensor(*context, batch, name); };
  const models::DetectorOptions options = options_of(form);
  ParameterStore store(*context);
  const models::Detector detector(store, options);
  store.allocate(0);
  models::freeze(store, options);
  if (const WeightReport report = load_weights(store, folder + "/weights.safetensors"); !report.complete())
    throw Error(Fault::data, report.summary());
  context->set_scalars({.step = 5, .seed = 11});

  const Tensor images = read("images");
  const models::DetectionTruth truth{read("sizes"),
                                     read("counts"),
                                     read("boxes"),
                                     read("classes"),
                                     {read("run_ends"), read("run_begins"), read("sizes")}};
  const models::Canvas canvas = detector.canvas(*context, images.dim(1), images.dim(2));
  TensorFile results;
  detect(*context, detector, canvas, images, truth.sizes, results);
  train(store, detector, canvas, images, truth, folder, results);
  results.write(folder + "/results.safetensors");
}

}  // namespace
}  // namespace dtrain

int main(int argc, char** argv) {
  try {
    if (argc != 4 && argc != 5)
      throw dtrain::Error(dtrain::Fault::config, "usage: parity_detector BATCH FOLDER cpu|gpu [cascade|c4|gn]");
    dtrain::run(argv[1], argv[2], argv[3], argc == 5 ? argv[4] : "");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
