// Files of a Detector's weights by the names of several programs: see models/detection/weight_names.h.
#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>

#include "libdtrain/io/array_file.h"
#include "libdtrain/train/weights.h"
#include "models/detection/weight_names.h"

namespace dtrain::models {

// As many classes, background included, as a file has scores for; none where it has none. Throws Error(fault) as
// ArrayFile does, and where they are fewer than 2 or more than 65,536.
std::optional<int64_t> classes_of_weights(const std::string& path, Fault fault = Fault::data);

struct [[nodiscard]] LoadedWeights {
  const WeightNames& names;  // the file's
  WeightReport report;
};

// Loads what fits by name and shape into a store's parameters, as load_weights() does, from safetensors or NumPy's .npz
// by the names of the program, among these, that knows most of them; a trailing ":0", as TensorFlow has it, is ignored.
// A linear layer may be a convolution over a whole image in the file. What such files hold besides weights is expected
// and ignored. Throws as load_weights() does.
LoadedWeights load_by_names(ParameterStore& store, std::span<const WeightNames* const> names, const std::string& path,
                            Fault fault = Fault::data);
// The same for a Detector, by all_weight_names(). What another program does not predict for background keeps its
// values, for it is never read.
LoadedWeights load_detector(ParameterStore& store, const std::string& path, Fault fault = Fault::data);

// Writes the parameters and buffers that are in `only` by names of another program; what that does not predict of
// background is left out. With torchvision's names the file also has an i64 scalar `num_batches_tracked`, 0, for each
// batch norm. `record` becomes metadata of safetensors. The file is a ResultFile. Throws Error where one has no such
// name, and as ArrayOutput does.
void save_detector(const ParameterStore& store, const std::set<std::string>& only, const WeightNames& names,
                   ArrayFormat format, const std::string& path, const WeightsRecord& record = {});

}  // namespace dtrain::models
