// The engine's side of ssd300.py: detections, losses and gradients of an SSD300.
//   parity_ssd300 BATCH FOLDER cpu|gpu
// BATCH holds `images` [n, 300, 300, 3], normalised, `counts` [n], `boxes` [n, g, 4] and `classes` [n, g]. FOLDER holds
// weights.safetensors and receives results.safetensors (`default_boxes`, `losses`, `detected_*` and, in Mode::eval,
// `deltas` and `logits`) and gradients.safetensors.
#include <cstdio>

#include "dtrain/models/ssd300.h"
#include "dtrain/train/weights.h"
#include "tests/parity/tensors.h"

namespace dtrain {
namespace {

constexpr int64_t kClasses = 81;

std::vector<float> on_host(Context& context, const Tensor& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.count()));
  context.download(tensor, values.data(), "parity");
  return values;
}

void detect(Context& context, const models::Ssd300& model, const Tensor& images, TensorFile& results) {
  Tape tape(context, Mode::eval);
  const models::Ssd300::Output output = model(tape, tape.constant(images));
  results.add(context, "deltas", output.deltas.value);
  results.add(context, "logits", output.logits.value);
  const models::Detections found = model.detect(context, output);
  results.add(context, "detected_boxes", found.boxes);
  results.add(context, "detected_scores", found.scores);
  results.add(context, "detected_classes", found.classes);
  results.add(context, "detected_counts", found.counts);
}

void train(ParameterStore& store, const models::Ssd300& model, const Tensor& images,
           const models::DetectionTruth& truth, const std::string& folder, TensorFile& results) {
  Context& context = store.context();
  Tape tape(context);
  const Loss loss = model.loss(tape, tape.constant(images), truth);
  std::vector<float> losses = on_host(context, loss.total.value);
  for (const Metric& metric : loss.metrics) losses.push_back(on_host(context, metric.sum)[0]);
  results.add("losses", losses);
  tape.backward(loss.total, &store);
  AtomicFile file(folder + "/gradients.safetensors");
  const std::vector<float> gradients = on_host(context, store.grads());
  write_weights(file.output(), store, gradients.data(), on_host(context, store.buffer_values()).data(), 0);
  file.commit();
}

void run(const std::string& batch_path, const std::string& folder, const std::string& device) {
  const auto context = parity_context(device);
  const SafetensorsFile batch(batch_path);
  const auto read = [&](const char* name) { return read_tensor(*context, batch, name); };
  ParameterStore store(*context);
  const models::Ssd300 model(store, {.classes = kClasses});
  store.allocate(0);
  if (const WeightReport report = load_weights(store, folder + "/weights.safetensors"); !report.complete())
    throw Error(Fault::data, report.summary());
  models::DetectionTruth truth;
  truth.counts = read("counts");
  truth.boxes = read("boxes");
  truth.classes = read("classes");
  const Tensor images = read("images");
  TensorFile results;
  results.add(*context, "default_boxes", model.default_boxes());
  detect(*context, model, images, results);
  train(store, model, images, truth, folder, results);
  results.write(folder + "/results.safetensors");
}

}  // namespace
}  // namespace dtrain

int main(int argc, char** argv) {
  try {
    if (argc != 4) throw dtrain::Error(dtrain::Fault::config, "usage: parity_ssd300 BATCH FOLDER cpu|gpu");
    dtrain::run(argv[1], argv[2], argv[3]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
