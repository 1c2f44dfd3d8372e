// Weights in safetensors with torchvision's names: exchangeable in both directions.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "dtrain/autograd/parameters.h"
#include "dtrain/io/array_file.h"
#include "dtrain/io/atomic_file.h"

namespace dtrain {

// Matching of a file's tensors with a model's.
struct [[nodiscard]] WeightReport {
  std::vector<std::string> loaded, missing, unexpected;
  std::vector<std::string> mismatched;  // "fc.weight: file F32 [1000, 2048], model F32 [10, 2048]"
  std::vector<std::string> cast;        // "fc.weight (F16)": loaded, rounded to nearest f32
  std::vector<std::string> unwrapped;   // "module.fc.weight": loaded after removing wrapper prefixes
  std::string left_out;                 // ArrayFile::left_out()

  bool complete() const { return missing.empty() && unexpected.empty() && mismatched.empty(); }
  std::string summary() const;  // one line with the first few names of each kind that failed or was converted
  // Messages about converted and unwrapped tensors and parts of the file that are not read; empty if there are none.
  std::vector<std::string> conversions() const;
  // The same, or the summary if something does not match.
  std::vector<std::string> notices() const;
  // Records that an array, requested as `asked`, was loaded as `ours`.
  void note_loaded(const std::string& ours, const std::string& asked, const ArrayEntry& entry);
  // Throws Error(fault) if no parameter of a non-empty store was loaded.
  void require_useful(const ParameterStore& store, const std::string& path, Fault fault) const;
};

// Metadata of weights by display name: model, conventions, class names. UTF-8.
using WeightsRecord = std::map<std::string, std::string>;
// Conversion to safetensors metadata and back; foreign metadata gives an empty record.
SafetensorsMetadata metadata_of(const WeightsRecord& record);
WeightsRecord record_in(const SafetensorsMetadata& metadata);

// Shape in torchvision's layout: OIHW for convolution weights.
Shape torch_shape(const Parameter& parameter);
// Values in torchvision's layout; linear weights over an image are channel-major. Throws Error before allocate().
std::vector<float> torch_values(const ParameterStore& store, const Parameter& parameter);

// Writes parameters and buffers in f32, convolution weights as OIHW, and the i64 scalar `num_batches_tracked` of each
// batch norm, as torchvision has it; `record` becomes metadata. Written atomically, through links (ResultFile). Throws
// Error before allocate().
void save_weights(const ParameterStore& store, const std::string& path, uint64_t batches_tracked = 0,
                  const WeightsRecord& record = {});

// The same from host copies of the value and buffer arenas, to an open file.
void write_weights(OutputFile& file, const ParameterStore& store, const float* values, const float* buffers,
                   uint64_t batches_tracked, const WeightsRecord& record = {});

// Loads tensors matching by name and shape from a file of any format that ArrayFile reads. `num_batches_tracked` is
// ignored. Throws Error(fault) for a malformed file, and for one without any parameter of the model, naming expected
// and found tensors; Error(Fault::numeric) for NaN or infinity; Error before allocate().
WeightReport load_weights(ParameterStore& store, const std::string& path, Fault fault = Fault::data);

}  // namespace dtrain
