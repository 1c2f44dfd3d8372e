// Loading and saving of detector weights with the parameter names of several programs; see
// dtrain/models/detection/weight_names.h.
#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>

#include "dtrain/io/array_file.h"
#include "dtrain/models/detection/weight_names.h"
#include "dtrain/train/weights.h"

namespace dtrain::models {

// Number of classes, including background, of the score layer in a file; empty if the file has no such layer. Throws
// Error(fault) as ArrayFile does, and for fewer than 2 or more than 65,536 classes.
std::optional<int64_t> classes_of_weights(const std::string& path, Fault fault = Fault::data);

struct [[nodiscard]] LoadedWeights {
  const WeightNames& names;  // the file's
  WeightReport report;
};

// Loads the weights that match by name and shape, as load_weights() does, from any ArrayFile. Uses the name table with
// the most matches; a trailing ":0" of TensorFlow is ignored. A linear layer may be stored as a convolution
// over the whole image. Known entries other than weights are ignored. Throws as load_weights() does.
LoadedWeights load_by_names(ParameterStore& store, std::span<const WeightNames* const> names, const std::string& path,
                            Fault fault = Fault::data);
// The same for a Detector with all_weight_names(). Background outputs that the other program does not predict keep
// their values; they are never read.
LoadedWeights load_detector(ParameterStore& store, const std::string& path, Fault fault = Fault::data);

// An array of a file, and its name and shape in another program.
struct RenamedArray {
  const ArrayEntry* from;
  std::string to;
  Shape shape;
};

struct Renaming {
  const WeightNames& from;  // the file's
  std::vector<RenamedArray> arrays;
};

// Names of the model's arrays in `file`, as load_by_names() finds them, by the table `to`, which must have the array
// order of the file's. Includes `num_batches_tracked`. Arrays that the file lacks are left out.
Renaming rename_arrays(const ParameterStore& store, std::span<const WeightNames* const> names, const WeightNames& to,
                       const ArrayFile& file);

// Writes the parameters and buffers listed in `only` with another program's names, without background outputs that it
// does not predict. With torchvision's names the file also has an i64 scalar 0 `num_batches_tracked` per batch norm.
// `record` becomes safetensors metadata. The file is a ResultFile. Returns the written arrays. Throws Error for an
// entry without such a name, and as ArrayOutput does.
std::vector<TensorSpec> save_detector(const ParameterStore& store, const std::set<std::string>& only,
                                      const WeightNames& names, ArrayFormat format, const std::string& path,
                                      const WeightsRecord& record = {});

}  // namespace dtrain::models
