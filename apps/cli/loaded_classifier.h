// A classifier with the weights of a file, and the pixels that it reads.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "apps/cli/conventions.h"
#include "apps/cli/machine.h"
#include "apps/cli/recorded_weights.h"
#include "data/catalog.h"
#include "libdtrain/autograd/parameters.h"
#include "libdtrain/autograd/prepared_weights.h"
#include "libdtrain/ops/pointwise.h"
#include "models/classifier.h"

namespace dtrain::cli {

// What is given of a model. What is not, and its weights have recorded, is as it was trained.
struct ClassifierFlags {
  std::string model, weights;
  std::string data_name = "imagenet";
  int64_t num_classes = 0;  // 0: as many as the weights have
  int64_t image_size = 0;   // 0: the model's default
  std::string preprocessing = "tf_cnn";
  bool ml_perf = false;
  std::string exif_orientation = "ignore";
  ConventionFlags conventions;
  std::string precision = "fp32", calibration;  // where declare_precision() has been called
  // Whether the calibration's ranges serve for other weights of the model, such as those of later steps of a training.
  bool ranges_for_any_weights = false;

  void declare(FlagSet& flags);
  void declare_precision(FlagSet& flags);
  // Throws Error where something is missing or does not go together.
  void check() const;
  // The same for the precision, on this machine.
  void check_precision(const Machine& machine) const;
  // What must be equal in two programs that share a calibration, by what a person calls it.
  std::map<std::string, std::string> calibrated_for() const;

  // Finds the file of the weights, see weights_file(), and takes what it has recorded where a flag was not given.
  // `given` tells which were. Throws Error where one contradicts the record.
  void take_recorded(const FlagSet& given);

  RecordedClassifier recorded{};
};

// For inference on `device`, "cpu", "gpu", or "auto", which is the GPU where there is one. Throws Error where there is
// none and it was asked for.
Machine inference_machine(const std::string& device, int64_t threads);

class LoadedClassifier {
 public:
  // Throws Error(Fault::checkpoint) where the weights do not fit, Error(Fault::data) where the calibration cannot be
  // read. `set` tells what was given.
  LoadedClassifier(const ClassifierFlags& flags, const FlagSet& set, const Machine& machine);

  Context& context() const { return *context_; }
  const ParameterStore& store() const { return store_; }
  const models::Classifier& model() const { return model_; }
  PreparedWeights& prepared() const { return *prepared_; }  // for tapes that infer
  const data::Pixels& pixels() const { return pixels_; }
  // By output; empty where the weights have recorded none.
  const std::vector<std::string>& class_names() const { return class_names_; }
  // Of the pixels, for the model's type and number of channels.
  PixelNormalization normalization() const;

 private:
  models::Classifier build(const ClassifierFlags& flags, const FlagSet& set);
  void quantize(const ClassifierFlags& flags);

  Machine machine_;
  std::unique_ptr<Context> context_;
  ParameterStore store_;
  data::Pixels pixels_;
  std::vector<std::string> class_names_;
  models::Classifier model_;
  std::unique_ptr<PreparedWeights> prepared_ = std::make_unique<PreparedWeights>(store_);
};

}  // namespace dtrain::cli
