#include "apps/cli/loaded_classifier.h"

#include <cmath>

#include <fmt/format.h>

#include "apps/cli/messages.h"
#include "apps/cli/vision.h"
#include "dtrain/models/catalog.h"
#include "dtrain/models/classifier_weights.h"
#include "dtrain/models/conventions.h"
#include "dtrain/ops/loss.h"
#include "dtrain/train/calibration_file.h"

namespace dtrain::cli {
namespace {

// int8 layers are quantised from f32 weights.
Machine with_precision(Machine machine, const ClassifierFlags& flags) {
  flags.check_precision(machine);
  machine.precision = precision_of(flags.precision);
  return machine;
}

}  // namespace

void ClassifierFlags::declare(FlagSet& flags) {
  declare_model(flags);
  flags.group("Model");
  flags
      .add(
          "weights", weights,
          "weights: a file (.safetensors, .npz, .pth, .pt, .ckpt; also s3:// or https://) with torchvision's or timm's "
          "tensor names, a checkpoint folder, or a train_dir (also s3://), whose newest checkpoint is used")
      .may_be_remote();
}

void ClassifierFlags::declare_model(FlagSet& flags) {
  flags.group("Model");
  flags.add("model", model,
            fmt::format("{}; default: the checkpoint's model", fmt::join(models::classifier_names(), ", ")));
  flags.add("data_name", data_name, "data set that the model was made for, if the model has several variants");
  flags.add("num_classes", num_classes, "outputs of the model; 0: as in the weights", kClasses);
  flags.group("Images");
  flags.add("image_size", image_size, "side of the images in pixels; 0: the checkpoint's, else the model's default",
            kImageSize);
  flags.add_choice("preprocessing", preprocessing, data::preprocessing_names(),
                   "preprocessing that the model was trained with; default: the checkpoint's");
  flags.add("ml_perf", ml_perf, "with tf_cnn: subtract the channel means instead of scaling to [-1, 1]");
  flags.add_choice("exif_orientation", exif_orientation, {"apply", "ignore"},
                   "apply or ignore the EXIF orientation tag of images; default: as in training");
  conventions.declare(flags);
}

void ClassifierFlags::declare_precision(FlagSet& flags) {
  flags.add_choice("precision", precision, {"fp32", "bf16", "int8"},
                   "data type of inference; int8 needs a CPU and --calibration");
  flags.add("calibration", calibration, "for --precision=int8: output file of dtrain-classify calibrate");
}

std::map<std::string, std::string> ClassifierFlags::calibrated_for() const {
  return {{"model", model + models::describe(conventions.conventions())},
          {"data set", find_model(model, data_name).dataset},  // the model variant for it
          {"preprocessing", preprocessing + (ml_perf ? ", ml_perf" : "")}};
}

void ClassifierFlags::check_precision(const Machine& machine) const {
  DT_CHECK((precision == "int8") == !calibration.empty(),
           "--precision=int8 and --calibration: expected both or neither");
  DT_CHECK(precision != "int8" || !machine.gpu, "--precision=int8: not supported on a GPU; use --device=cpu");
}

void ClassifierFlags::check() const {
  DT_CHECK(!model.empty(), "--weights=", weights, ": expected --model, because the weights do not record their model");
  DT_CHECK(!ml_perf || preprocessing == "tf_cnn", "--ml_perf needs --preprocessing=tf_cnn");
}

void ClassifierFlags::take_recorded(const FlagSet& given) {
  weights = weights_file(weights);
  recorded = recorded_classifier(weights);
  recorded.refuse_contradictions(given, [](const std::string&) { return true; });
  FlagSet own("", "", "");  // `given` may be bound to another object's values
  declare(own);
  for (const RecordedFlag& one : recorded.flags())
    if (!one.value.empty() && own.declares(one.flag) && !given.given(one.flag)) recorded.imply(own, one);
}

Machine inference_machine(const std::string& device, int64_t threads) {
  Machine machine;
  const std::string reason = why_no_gpu();
  DT_CHECK(device != "gpu" || reason.empty(), "--device=gpu: ", reason, "; use --device=cpu");
  machine.gpu = device != "cpu" && reason.empty();
  machine.threads = static_cast<int>(threads);
  return machine;
}

LoadedClassifier::LoadedClassifier(const ClassifierFlags& flags, const FlagSet& set, const Machine& machine)
    : machine_(with_precision(machine, flags)),
      context_(machine_.make_context()),
      store_(*context_),
      model_(build(flags, set)) {
  pixels_.preprocessing = flags.preprocessing;
  pixels_.ml_perf = flags.ml_perf;
  pixels_.orientation = flags.exif_orientation == "apply" ? data::Orientation::apply : data::Orientation::ignore;
  pixels_.size = static_cast<int>(model_.image_size);
  class_names_ = flags.recorded.class_names;
  multi_label_ = flags.recorded.loss == "bce";
  if (class_names_.size() != static_cast<size_t>(model_.classes)) class_names_.clear();
  if (!flags.calibration.empty()) quantize(flags);
}

std::vector<float> LoadedClassifier::probabilities(const Tensor& logits) const {
  if (!multi_label_) return download_f32(*context_, softmax(*context_, logits), "classification");
  std::vector<float> values = download_f32(*context_, logits, "classification");
  for (float& value : values) value = 1 / (1 + std::exp(-value));
  return values;
}

void LoadedClassifier::quantize(const ClassifierFlags& flags) {
  const Calibration calibration = load_calibration(flags.calibration);
  const auto allowed = flags.ranges_for_any_weights ? WeightsOfCalibration::any : WeightsOfCalibration::same;
  prepared_->quantize(layers_of(calibration, flags.calibration, flags.calibrated_for(), store_, allowed));
  if (flags.ranges_for_any_weights && calibration.weights != weights_digest(store_))
    print_message("note", fmt::format("{}: calibrated on other weights than {}; recalibrate if the accuracy matters",
                                      flags.calibration, flags.weights));
}

models::Classifier LoadedClassifier::build(const ClassifierFlags& flags, const FlagSet& set) {
  const models::ClassifierInfo& info = find_model(flags.model, flags.data_name);
  flags.conventions.check(set, info);
  pixels_.dataset = info.dataset;
  models::ClassifierOptions options{
      .classes = flags.num_classes, .image_size = flags.image_size, .conventions = flags.conventions.conventions()};
  if (options.classes == 0) {
    ParameterStore names(*context_);
    models::make_classifier(names, info, options);
    options.classes = models::classes_of_weights(names, info, flags.weights, Fault::checkpoint);
  }
  models::Classifier model = models::make_classifier(store_, info, options);
  ComputeOptions compute = machine_.compute();
  compute.gradients = false;
  store_.allocate(/*seed=*/0, compute);
  const auto [names, report] = models::load_classifier(store_, info, flags.weights, Fault::checkpoint);
  if (!report.missing.empty() || !report.mismatched.empty())
    throw Error(Fault::checkpoint, fmt::format("{}: does not fit {}: {}", flags.weights, info.name, report.summary()));
  if (flags.prints_notices) print_notices(report, flags.weights);
  return model;
}

PixelNormalization LoadedClassifier::normalization() const {
  PixelNormalization normalization = normalization_of(pixels_);
  normalization.dtype = machine_.precision;
  normalization.channels = store_.image_channels();
  return normalization;
}

}  // namespace dtrain::cli
