// A classifier with weights from a file, and its preprocessing.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "apps/cli/conventions.h"
#include "apps/cli/machine.h"
#include "apps/cli/recorded_weights.h"
#include "dtrain/autograd/parameters.h"
#include "dtrain/autograd/prepared_weights.h"
#include "dtrain/data/catalog.h"
#include "dtrain/models/classifier.h"
#include "dtrain/ops/pointwise.h"

namespace dtrain::cli {

// Flags of a model. Values that are not given default to those recorded with the weights.
struct ClassifierFlags {
  std::string model, weights;
  std::string data_name = "imagenet";
  int64_t num_classes = 0;  // 0: as in the weights
  int64_t image_size = 0;   // 0: the model's default
  std::string preprocessing = "tf_cnn";
  bool ml_perf = false;
  std::string exif_orientation = "ignore";
  ConventionFlags conventions;
  std::string precision = "fp32", calibration;  // if declare_precision() was called
  // Whether the calibration applies to other weights of the model too, such as later checkpoints.
  bool ranges_for_any_weights = false;
  bool prints_notices = true;  // about tensors that were cast, unwrapped or not used

  // All flags, or all but --weights.
  void declare(FlagSet& flags);
  void declare_model(FlagSet& flags);
  void declare_precision(FlagSet& flags);
  // Throws Error for missing or conflicting flags.
  void check() const;
  // The same for the precision, on this machine.
  void check_precision(const Machine& machine) const;
  // Settings that two programs must share to share a calibration, by display name.
  std::map<std::string, std::string> calibrated_for() const;

  // Finds the weights, see weights_file(), and sets flags that were not given, by `given`, from their metadata. Throws
  // Error if a given flag contradicts the record.
  void take_recorded(const FlagSet& given);

  RecordedClassifier recorded{};
};

// Machine for inference on `device`: "cpu", "gpu", or "auto", a GPU if there is one. Throws Error if "gpu" is not
// available.
Machine inference_machine(const std::string& device, int64_t threads);

class LoadedClassifier {
 public:
  // Throws Error(Fault::checkpoint) if the weights do not fit, Error(Fault::data) if the calibration cannot be read.
  // `set`: the flags that were given.
  LoadedClassifier(const ClassifierFlags& flags, const FlagSet& set, const Machine& machine);

  Context& context() const { return *context_; }
  const ParameterStore& store() const { return store_; }
  const models::Classifier& model() const { return model_; }
  PreparedWeights& prepared() const { return *prepared_; }  // for inference tapes
  const data::Pixels& pixels() const { return pixels_; }
  // By output; empty if not recorded.
  const std::vector<std::string>& class_names() const { return class_names_; }
  // Of logits [n, classes], by row: softmax, or sigmoids of a model that was trained with several labels per image.
  // Waits for the device.
  std::vector<float> probabilities(const Tensor& logits) const;
  // Preprocessing for the model's data type and number of channels.
  PixelNormalization normalization() const;

 private:
  models::Classifier build(const ClassifierFlags& flags, const FlagSet& set);
  void quantize(const ClassifierFlags& flags);

  Machine machine_;
  std::unique_ptr<Context> context_;
  ParameterStore store_;
  data::Pixels pixels_;
  std::vector<std::string> class_names_;
  bool multi_label_ = false;
  models::Classifier model_;
  std::unique_ptr<PreparedWeights> prepared_ = std::make_unique<PreparedWeights>(store_);
};

}  // namespace dtrain::cli
