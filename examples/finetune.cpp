// Fine-tuning of a classifier for other classes: finetune WEIGHTS DATA_DIR CLASSES OUTPUT [STEPS]
// WEIGHTS is a ResNet-18 with torchvision's names (safetensors.torch.save_file(model.state_dict(), ...)). DATA_DIR
// holds TFRecords made by `dtrain-data imagenet` from image folders; labels start at 1. The stem and the first stage
// are frozen. The second stage trains with a tenth of the learning rate and without weight decay, the new classifier
// with ten times the rate.
#include <cstdio>
#include <cstdlib>

#include <dtrain/data/catalog.h>
#include <dtrain/data/loader.h>
#include <dtrain/dtrain.h>
#include <dtrain/models/catalog.h>

namespace dt = dtrain;

// Requires matching weights for all layers except the classifier.
void require_backbone(const dt::WeightReport& report) {
  for (const std::vector<std::string>* names : {&report.missing, &report.mismatched})
    for (const std::string& name : *names)
      if (!name.starts_with("fc."))
        throw dt::Error(dt::Fault::data, "the weights do not fit a ResNet-18: " + report.summary());
}

int main(int argc, char** argv) try {
  if (argc < 5) return std::fprintf(stderr, "usage: %s WEIGHTS DATA_DIR CLASSES OUTPUT [STEPS]\n", argv[0]), 1;
  const int64_t classes = std::atoll(argv[3]);
  const int steps = argc > 5 ? std::atoi(argv[5]) : 1000;
  constexpr int64_t kBatch = 32;
  constexpr int kSize = 128;

  const auto context = dt::make_cpu_context();
  dt::ParameterStore store(*context);
  const dt::models::Classifier model = dt::models::make_classifier(
      store, dt::models::classifier_info("resnet18_v1.5", "imagenet"), {.classes = classes, .image_size = kSize});
  store.allocate(/*seed=*/1);
  require_backbone(dt::load_weights(store, argv[1]));
  for (const char* path : {"conv1", "bn1", "layer1"}) store.freeze(path);  // batch-norm statistics stay fixed, too
  store.set_multipliers("fc", {.rate = 10});
  store.set_multipliers([](const std::string& name) { return name.starts_with("layer2"); },
                        {.rate = 0.1f, .weight_decay = 0});

  const dt::data::Pixels pixels{.dataset = "imagenet", .preprocessing = "torchvision", .size = kSize};
  dt::data::Loader loader(dt::data::open_split(pixels, {.directory = argv[2], .classes = classes, .label_offset = -1}),
                          {.batch = kBatch, .seed = 1});
  dt::PixelNormalization normalization;
  for (int c = 0; c < 3; ++c) {
    normalization.mean[c] = pixels.scale().mean[c];
    normalization.scale[c] = pixels.scale().scale[c];
  }

  dt::Optimizer optimizer(store, {.update = {.rule = dt::UpdateRule::momentum}, .weight_decay = 1e-4f});
  dt::Trainer trainer(
      store, optimizer,
      {.decay = dt::Schedule::Decay::cosine, .base = 0.01, .floor = 0, .total_steps = static_cast<uint64_t>(steps)});
  for (int i = 0; i < steps; ++i) {
    const dt::data::Batch& batch = *loader.next();
    const dt::StepReport report = trainer.step([&](dt::Tape& tape, int) {
      const dt::Var images = tape.constant(dt::normalize_pixels(*context, batch["images"], normalization));
      return dt::softmax_cross_entropy(tape, model.forward(tape, images), batch["labels"], {.label_smoothing = 0.1f});
    });
    if (!report.finite) throw dt::Error(dt::Fault::numeric, "the loss is not finite; try a lower learning rate");
    if (report.step % 10 == 0 || report.step == 1)
      std::printf("step %ju: loss %.3f, accuracy %.1f %%\n", uintmax_t{report.step}, report.loss,
                  100 * report.metric("top_1_accuracy"));
  }
  dt::save_weights(store, argv[4]);
  return 0;
} catch (const dt::Error& error) {
  std::fprintf(stderr, "error: %s\n", error.what());
  return static_cast<int>(error.fault());
}
