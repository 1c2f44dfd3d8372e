// Metadata recorded with trained weights: model, conventions, classes. The only reader of it.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "apps/cli/flags.h"
#include "dtrain/models/classifier.h"
#include "dtrain/train/weights.h"
#include "libdtrain/train/checkpoint_files.h"

namespace dtrain::cli {

// Metadata of a safetensors file, or else the state of the checkpoint that contains it; empty if there is neither, and
// for other formats. Throws Error(Fault::checkpoint) for a damaged state.
WeightsRecord recorded_with(const std::string& file);

// Metadata keys of image classifiers.
inline constexpr char kModelKey[] = "model", kClassesKey[] = "classes", kDataNameKey[] = "data name",
                      kImageSizeKey[] = "image size", kPreprocessingKey[] = "preprocessing",
                      kLabelOffsetKey[] = "label offset", kClassNamesKey[] = "class names",
                      kOrientationKey[] = "EXIF orientation", kLossKey[] = "loss";

// A flag, its metadata key, and the recorded value; empty if there is none.
struct RecordedFlag {
  std::string flag{}, key{}, value{};
};

// Recorded metadata of an image classifier; missing values are empty.
struct RecordedClassifier {
  std::string file{};   // file of the weights, for messages
  std::string model{};  // model name; empty if the record is not of a classifier
  models::ModelConventions conventions{};
  std::string classes{}, data_name{}, image_size{}, preprocessing{}, label_offset{}, orientation{};
  std::string loss{};                      // "bce" for multi-label training
  std::vector<std::string> class_names{};  // by output; empty for classes without a name

  // Flags of the model, images and labels as in training; none for other models.
  std::vector<RecordedFlag> flags() const;
  // Sets a flag that was not given. Throws Error(Fault::checkpoint) with file and key if the value is invalid for the
  // flag.
  void imply(FlagSet& set, const RecordedFlag& one) const;
  // Throws Error(Fault::config) with both values if a given flag that `which` accepts contradicts the record; empty
  // conventions count as the model's defaults. Image size and EXIF orientation may differ.
  void refuse_contradictions(const FlagSet& set, const std::function<bool(const std::string& flag)>& which) const;
};

// Reads the record of the weights in `file`. Throws Error(Fault::checkpoint) for an invalid record.
RecordedClassifier recorded_classifier(const std::string& file);

// Sets the flags of model, images and labels that were not given to the values recorded with the weights `path`
// (anything that weights_file() accepts; may be empty). Returns a notice about them. In training (`trains`), model and
// number of classes may differ: only matching tensors are loaded. Throws Error if a given flag contradicts the record:
// any flag in evaluation, the model's conventions in training.
std::vector<std::string> take_recorded(FlagSet& flags, const std::string& path, bool trains);

// Metadata that a training records with its weights: the part of the run's state about model and images, the data set
// of the model variant, and the class names by output.
WeightsRecord classifier_record(const TrainState& state, const std::string& data_name,
                                const std::vector<std::string>& class_names);

// Logs tensors that were cast, unwrapped, or did not fit, if any.
void print_notices(const WeightReport& report, const std::string& path);

}  // namespace dtrain::cli
