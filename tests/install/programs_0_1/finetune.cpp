// Adapts trained weights to classes of one's own: finetune WEIGHTS DATA_DIR CLASSES OUTPUT [STEPS]
// WEIGHTS is a ResNet-18 by torchvision's names (safetensors.torch.save_file(model.state_dict(), ...)); DATA_DIR holds
// TFRecords that `dtrain-data imagenet` made of folders of images, whose labels count from 1. The stem and the first
// stage are frozen, the second stage learns at a tenth of the rate and without weight decay, and the classifier, which
// starts anew, at ten times the rate.
#include <cstdio>
#include <cstdlib>

#include "data/catalog.h"
#include "data/loader.h"
#include "libdtrain/dtrain.h"
#include "models/catalog.h"
using namespace dtrain;

// All but the classifier must be in the file and fit.
void require_backbone(const WeightReport& report) {
  for (const std::vector<std::string>* names : {&report.missing, &report.mismatched})
    for (const std::string& name : *names)
      if (!name.starts_with("fc.")) throw Error(Fault::data, "the weights do not fit a ResNet-18: " + report.summary());
}

int main(int argc, char** argv) try {
  if (argc < 5) return std::fprintf(stderr, "usage: %s WEIGHTS DATA_DIR CLASSES OUTPUT [STEPS]\n", argv[0]), 1;
  const int64_t classes = std::atoll(argv[3]);
  const int steps = argc > 5 ? std::atoi(argv[5]) : 1000;
  constexpr int64_t kBatch = 32;
  constexpr int kSize = 128;

  const auto context = make_cpu_context();
  ParameterStore store(*context);
  const models::Classifier model = models::make_classifier(store, models::classifier_info("resnet18_v1.5", "imagenet"),
                                                           {.classes = classes, .image_size = kSize});
  store.allocate(/*seed=*/1);
  require_backbone(load_weights(store, argv[1]));
  for (const char* path : {"conv1", "bn1", "layer1"}) store.freeze(path);  // batch norms keep their statistics, too
  store.set_multipliers("fc", {.rate = 10});
  store.set_multipliers([](const std::string& name) { return name.starts_with("layer2"); },
                        {.rate = 0.1f, .weight_decay = 0});

  const data::Pixels pixels{.dataset = "imagenet", .preprocessing = "torchvision", .size = kSize};
  data::Loader loader(data::open_split(pixels, {.directory = argv[2], .classes = classes, .label_offset = -1}),
                      {.batch = kBatch, .seed = 1});
  PixelNormalization normalization;
  for (int c = 0; c < 3; ++c) {
    normalization.mean[c] = pixels.scale().mean[c];
    normalization.scale[c] = pixels.scale().scale[c];
  }

  Optimizer optimizer(store, {.update = {.rule = UpdateRule::momentum}, .weight_decay = 1e-4f});
  Trainer trainer(
      store, optimizer,
      {.decay = Schedule::Decay::cosine, .base = 0.01, .floor = 0, .total_steps = static_cast<uint64_t>(steps)});
  for (int i = 0; i < steps; ++i) {
    const data::Batch& batch = *loader.next();
    const StepReport report = trainer.step([&](Tape& tape, int) {
      const Var images = tape.constant(normalize_pixels(*context, batch["images"], normalization));
      return softmax_cross_entropy(tape, model.forward(tape, images), batch["labels"], {.label_smoothing = 0.1f});
    });
    if (!report.finite) throw Error(Fault::numeric, "the loss is not finite; a lower rate may help");
    if (report.step % 10 == 0 || report.step == 1)
      std::printf("step %ju: loss %.3f, %.1f %% right\n", uintmax_t{report.step}, report.loss,
                  100 * report.metric("top_1_accuracy"));
  }
  save_weights(store, argv[4]);
  return 0;
} catch (const Error& error) {
  std::fprintf(stderr, "error: %s\n", error.what());
  return static_cast<int>(error.fault());
}
