// Weights by torchvision's names, as safetensors: so that what is trained here loads there and the other way round.
#pragma once

#include <string>
#include <vector>

#include "libdtrain/autograd/parameters.h"
#include "libdtrain/io/atomic_file.h"

namespace dtrain {

struct WeightReport {
  std::vector<std::string> loaded, missing, unexpected;
  std::vector<std::string> mismatched;  // "fc.weight: file F32 [1000, 2048], model F32 [10, 2048]"
  bool complete() const { return missing.empty() && unexpected.empty() && mismatched.empty(); }
  std::string summary() const;  // one line, and the first few names of each kind that went wrong
};

// Shape of a parameter as torchvision has it: OIHW for convolution weights.
Shape torch_shape(const Parameter& parameter);
// The values of a store's parameter in that order, and those of a linear layer over an image channel by channel. Throws
// Error before allocate().
std::vector<float> torch_values(const ParameterStore& store, const Parameter& parameter);

// Writes parameters and buffers, f32, convolution weights as OIHW, and for each batch norm the i64 scalar
// `num_batches_tracked` that torchvision has. The file is a ResultFile: it appears whole or not at all, where links
// lead. Throws Error before allocate().
void save_weights(const ParameterStore& store, const std::string& path, uint64_t batches_tracked = 0);

// The same from host copies of the store's value and buffer arenas, into a file of the caller's.
void write_weights(OutputFile& file, const ParameterStore& store, const float* values, const float* buffers,
                   uint64_t batches_tracked);

// Loads what fits by name, type and shape. `num_batches_tracked` entries are expected and ignored. Throws Error(fault)
// on a malformed file and where nothing fits, naming what was expected and what was found; Error(Fault::numeric) for a
// NaN or an infinity; Error before allocate().
WeightReport load_weights(ParameterStore& store, const std::string& path, Fault fault = Fault::data);

}  // namespace dtrain
