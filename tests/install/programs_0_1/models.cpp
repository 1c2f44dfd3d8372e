// Models of version 0.1: classifiers, a detector, SSD300, their weights, ONNX and int8 calibration.
#include <cstdio>

#include "libdtrain/autograd/prepared_weights.h"
#include "libdtrain/autograd/quantized_layer.h"
#include "libdtrain/dtrain.h"
#include "libdtrain/ops/quantized_conv.h"
#include "libdtrain/train/activation_ranges.h"
#include "libdtrain/train/calibration_file.h"
#include "libdtrain/train/calibrator.h"
#include "models/catalog.h"
#include "models/classifier.h"
#include "models/classifier_weights.h"
#include "models/conventions.h"
#include "models/detection/canvas.h"
#include "models/detection/detector.h"
#include "models/detection/fpn.h"
#include "models/detection/heads.h"
#include "models/detection/onnx.h"
#include "models/detection/options.h"
#include "models/detection/presets.h"
#include "models/detection/rpn.h"
#include "models/detection/truth.h"
#include "models/detection/weight_files.h"
#include "models/detection/weight_names.h"
#include "models/onnx/classifier.h"
#include "models/resnet.h"
#include "models/ssd300.h"
#include "models/ssd300_weights.h"
#include "models/trace.h"

using namespace dtrain;

// A classifier and its forward pass.
models::Forward forward_of(const models::Classifier& model) { return model.network; }

size_t parameters_of(Context& context, const models::DetectorOptions& options) {
  ParameterStore store(context);
  const models::Detector detector(store, options);
  models::freeze(store, options);
  return static_cast<size_t>(store.parameter_count());
}

int main(int argc, char** argv) try {
  const auto context = make_cpu_context();
  ParameterStore store(*context);
  const models::ClassifierInfo& info = models::classifier_info("resnet20", "cifar10");
  const models::Classifier model = models::make_classifier(store, info, {.classes = 10});
  store.allocate(/*seed=*/1, {.gradients = false});
  if (argc > 1) models::export_onnx(store, model, {}, argv[1]);

  Calibrator calibrator(store);
  PreparedWeights prepared;
  Tape tape(*context, prepared);
  calibrator.observe(tape);
  const Var logits = forward_of(model)(tape, tape.constant(context->zeros({1, 32, 32, 3})), nullptr);
  const NamedLayers layers = calibrator.layers(RangeRule::percentile);
  const Calibration calibration{.ranges = name_of(RangeRule::percentile), .layers = layers};
  const ByteForm form = layers.begin()->second.x;

  models::DetectorOptions options = models::detector_presets().front().options;
  options.detection = models::DetectionOptions{.score_threshold = 0.5f};
  const models::SsdOptions ssd{.classes = 21};
  const models::ResNetOptions backbone = models::ssd_backbone(ssd);
  std::printf("%s: %d layers in int8, scale %.4f; detector of %zu parameters; %zu blocks, %zu weight names\n",
              model.name.c_str(), static_cast<int>(calibration.layers.size()), form.scale,
              parameters_of(*context, options), backbone.blocks.size(), models::all_weight_names().size());
  static_cast<void>(&models::load_classifier), static_cast<void>(&models::load_ssd_backbone);
  static_cast<void>(&models::load_detector), static_cast<void>(&models::conventions_from);
  return logits.shape() == Shape{1, 10} ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "error: %s\n", error.what());
  return static_cast<int>(error.fault());
}
