// Weights by torchvision's names, as safetensors: so that what is trained here loads there and the other way round.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "libdtrain/autograd/parameters.h"
#include "libdtrain/io/array_file.h"
#include "libdtrain/io/atomic_file.h"

namespace dtrain {

// What became of each tensor of a file and of a model.
struct [[nodiscard]] WeightReport {
  std::vector<std::string> loaded, missing, unexpected;
  std::vector<std::string> mismatched;  // "fc.weight: file F32 [1000, 2048], model F32 [10, 2048]"
  std::vector<std::string> cast;        // "fc.weight (F16)": loaded, rounded to the nearest float
  std::vector<std::string> unwrapped;   // "module.fc.weight": loaded without what wrappers put before the name

  bool complete() const { return missing.empty() && unexpected.empty() && mismatched.empty(); }
  std::string summary() const;  // one line, and the first few names of each kind that went wrong or was converted
  // Lines for people about what was cast and unwrapped; none where nothing was.
  std::vector<std::string> conversions() const;
  // The same, or the summary where something does not fit.
  std::vector<std::string> notices() const;
  // Notes that an array, which was asked for by the name `asked`, was loaded as `ours`.
  void note_loaded(const std::string& ours, const std::string& asked, const ArrayEntry& entry);
  // Throws Error(fault) where none of the store's parameters was loaded, though it has some.
  void require_useful(const ParameterStore& store, const std::string& path, Fault fault) const;
};

// What a file of weights says of itself, by what a person calls it: the model, its conventions, the names of its
// classes. All text is UTF-8.
using WeightsRecord = std::map<std::string, std::string>;
// As the metadata of safetensors, and back; other programs' metadata is none of a record.
SafetensorsMetadata metadata_of(const WeightsRecord& record);
WeightsRecord record_in(const SafetensorsMetadata& metadata);

// Shape of a parameter as torchvision has it: OIHW for convolution weights.
Shape torch_shape(const Parameter& parameter);
// The values of a store's parameter in that order, and those of a linear layer over an image channel by channel. Throws
// Error before allocate().
std::vector<float> torch_values(const ParameterStore& store, const Parameter& parameter);

// Writes parameters and buffers, f32, convolution weights as OIHW, and for each batch norm the i64 scalar
// `num_batches_tracked` that torchvision has; `record` becomes metadata. The file is a ResultFile: it appears whole or
// not at all, where links lead. Throws Error before allocate().
void save_weights(const ParameterStore& store, const std::string& path, uint64_t batches_tracked = 0,
                  const WeightsRecord& record = {});

// The same from host copies of the store's value and buffer arenas, into a file of the caller's.
void write_weights(OutputFile& file, const ParameterStore& store, const float* values, const float* buffers,
                   uint64_t batches_tracked, const WeightsRecord& record = {});

// Loads what fits by name and shape from safetensors or NumPy's .npz, as ArrayFile finds and reads it.
// `num_batches_tracked` entries are expected and ignored. Throws Error(fault) on a malformed file and where no
// parameter of the model is in it, naming what was expected and what was found; Error(Fault::numeric) for a NaN or an
// infinity; Error before allocate().
WeightReport load_weights(ParameterStore& store, const std::string& path, Fault fault = Fault::data);

}  // namespace dtrain
