// The engine's side of resnet50.py and classifiers.py: trains a classifier for a few steps from given weights on a
// given batch.
//   parity_model BATCH FOLDER name=NAME dataset=NAME classes=... auxiliary_head=0|1 lr=... momentum=...
//   weight_decay=... steps=... device=cpu|gpu precision=fp32|bf16|fp16
// BATCH holds `images` [n, h, w, 3] and `labels` [n]. FOLDER holds weights.safetensors and receives results.safetensors
// (`logits` of the first step, `eval_logits` and, with prepared weights, `inferred_logits` before it, `losses` of all
// steps), gradients.safetensors (of the first step), first.safetensors and, for several steps, last.safetensors
// (weights after the first and last step).
#include <cstdio>
#include <map>

#include "dtrain/autograd/prepared_weights.h"
#include "dtrain/models/catalog.h"
#include "dtrain/ops/pointwise.h"
#include "dtrain/train/trainer.h"
#include "dtrain/train/weights.h"
#include "tests/parity/tensors.h"

namespace dtrain {
namespace {

std::vector<float> values_of(Context& context, const Tensor& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.count()));
  context.download(tensor, values.data(), "parity");
  return values;
}

void save_gradients(const ParameterStore& store, float loss_scale, const std::string& path) {
  AtomicFile file(path);
  auto gradients = values_of(store.context(), store.grads());
  for (float& gradient : gradients) gradient /= loss_scale;
  const auto buffers = values_of(store.context(), store.buffer_values());
  write_weights(file.output(), store, gradients.data(), buffers.data(), 0);
  file.commit();
}

void run(const std::string& batch_path, const std::string& folder, std::map<std::string, std::string> options) {
  const auto context = parity_context(options.at("device"));
  const SafetensorsFile batch(batch_path);
  const Tensor pixels = read_tensor(*context, batch, "images"), labels = read_tensor(*context, batch, "labels");
  ParameterStore store(*context);
  auto model = models::make_classifier(store, models::classifier_info(options.at("name"), options.at("dataset")),
                                       {.classes = std::stoll(options.at("classes")),
                                        .image_size = pixels.dim(1),
                                        .auxiliary_head = options.at("auxiliary_head") == "1"});
  const std::string& precision = options.at("precision");
  const DType dtype = precision == "bf16" ? DType::bf16 : precision == "fp16" ? DType::f16 : DType::f32;
  store.allocate(0, {dtype, context->is_cpu() ? 3 : static_cast<int>(16 / size_of(dtype))});
  const WeightReport report = load_weights(store, folder + "/weights.safetensors");
  DT_CHECK(report.complete(), report.summary());

  PixelNormalization as_they_are;
  as_they_are.dtype = dtype;
  as_they_are.channels = store.image_channels();
  const Tensor images = normalize_pixels(*context, pixels, as_they_are);

  OptimizerOptions optimizer_options;
  optimizer_options.weight_decay = std::stof(options.at("weight_decay"));
  optimizer_options.update.momentum = std::stof(options.at("momentum"));
  Optimizer optimizer(store, optimizer_options);
  Schedule schedule;
  schedule.base = std::stod(options.at("lr"));
  const float loss_scale = dtype == DType::f16 ? 128.0f : 1.0f;
  Trainer trainer(store, optimizer, schedule, {.loss_scale = loss_scale});

  Tape eval(*context, Mode::eval);
  TensorFile results;
  results.add(*context, "eval_logits", model.forward(eval, eval.constant(images)).value);
  {
    PreparedWeights prepared(store);
    Tape tape(*context, prepared);
    results.add(*context, "inferred_logits", model.forward(tape, tape.constant(images)).value);
  }
  const int64_t steps = std::stoll(options.at("steps"));
  std::vector<float> losses;
  const models::ForwardFunction network = model.network;
  model.network = [&](Tape& tape, const Var& x, std::vector<Var>* auxiliary) {
    const Var logits = network(tape, x, auxiliary);
    if (losses.empty()) results.add(*context, "logits", logits.value);
    return logits;
  };
  for (int64_t step = 0; step < steps; ++step) {
    const StepReport done =
        trainer.step([&](Tape& tape, int) { return model.loss(tape, tape.constant(images), labels); });
    losses.push_back(done.loss);
    if (step > 0) continue;
    save_gradients(store, loss_scale, folder + "/gradients.safetensors");
    save_weights(store, folder + "/first.safetensors", 1);
  }
  if (steps > 1) save_weights(store, folder + "/last.safetensors", static_cast<uint64_t>(steps));
  results.add("losses", losses);
  results.write(folder + "/results.safetensors");
}

}  // namespace
}  // namespace dtrain

int main(int argc, char** argv) {
  try {
    DT_CHECK(argc > 3, "usage: parity_model BATCH FOLDER key=value...");
    std::map<std::string, std::string> options;
    for (int i = 3; i < argc; ++i) {
      const std::string word = argv[i];
      options[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
    }
    dtrain::run(argv[1], argv[2], options);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "parity_model: %s\n", error.what());
    return 1;
  }
}
