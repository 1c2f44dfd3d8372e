// What trained weights say of themselves: the model, its conventions, its classes. The one place where programs that
// read weights learn it.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "apps/cli/flags.h"
#include "libdtrain/train/checkpoint_files.h"
#include "libdtrain/train/weights.h"
#include "models/classifier.h"

namespace dtrain::cli {

// What the metadata of a file of safetensors says, or else the state of the checkpoint that it is a part of; empty
// where neither is there, and for what is no file of safetensors. Throws Error(Fault::checkpoint) for a damaged state.
WeightsRecord recorded_with(const std::string& file);

// The keys of records of image classifiers.
inline constexpr char kModelKey[] = "model", kClassesKey[] = "classes", kDataNameKey[] = "data name",
                      kImageSizeKey[] = "image size", kPreprocessingKey[] = "preprocessing",
                      kLabelOffsetKey[] = "label offset", kClassNamesKey[] = "class names",
                      kOrientationKey[] = "EXIF orientation";

// A flag, the key of the record that it is about, and the value that is recorded; empty where none is.
struct RecordedFlag {
  std::string flag{}, key{}, value{};
};

// What a record says of an image classifier. What it does not say is empty.
struct RecordedClassifier {
  std::string file{};   // of the weights, for messages
  std::string model{};  // its name; empty where the record is of no classifier
  models::ModelConventions conventions{};
  std::string classes{}, data_name{}, image_size{}, preprocessing{}, label_offset{}, orientation{};
  std::vector<std::string> class_names{};  // by output; empty texts for those that have none

  // The flags about the model, its images and their labels as they were in training; none of what is no classifier.
  std::vector<RecordedFlag> flags() const;
  // Sets a flag that was not given. Throws Error(Fault::checkpoint), which names the file and the key, where the flag
  // does not take the value.
  void imply(FlagSet& set, const RecordedFlag& one) const;
  // Throws Error(Fault::config), which names both values, where one of the flags that `which` takes was given and its
  // value is another one, by the model's own conventions where one of them says nothing. Images of another size, or
  // turned otherwise, may be shown to a model.
  void refuse_contradictions(const FlagSet& set, const std::function<bool(const std::string& flag)>& which) const;
};

// Of the weights in `file`. Throws Error(Fault::checkpoint) for a record that no program here writes.
RecordedClassifier recorded_classifier(const std::string& file);

// For a program that has these flags and is given the weights `path`, a file or what weights_file() takes for one, or
// none: sets the flags of the model, its images and labels, as far as they were not given, to what the weights have
// recorded, and returns a notice that says so. In training (`trains`) the model and the number of classes may differ:
// the tensors that fit are loaded. Throws Error where a flag that was given contradicts the record: in evaluation any
// flag, in training one of the model's conventions.
std::vector<std::string> take_recorded(FlagSet& flags, const std::string& path, bool trains);

// What a training records with its weights: what of a run's state is about the model and its images, the data set
// whose form of the model it is, and the names of the classes by output.
WeightsRecord classifier_record(const TrainState& state, const std::string& data_name,
                                const std::vector<std::string>& class_names);

// Says for people what of weights was cast, unwrapped, or does not fit, if anything.
void print_notices(const WeightReport& report, const std::string& path);

}  // namespace dtrain::cli
