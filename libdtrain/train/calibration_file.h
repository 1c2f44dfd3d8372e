// A calibration as a file: how the layers of one set of weights infer in int8.
#pragma once

#include <map>
#include <string>

#include "libdtrain/train/calibrator.h"

namespace dtrain {

struct Calibration {
  std::map<std::string, std::string> identity{};  // what must be equal where it is used, by what a person calls it
  std::string weights{};                          // weights_digest() of those that it belongs to
  std::string ranges{};                           // name_of(RangeRule)
  uint64_t images = 0;                            // that were looked at
  NamedLayers layers{};
};

// Names the values of parameters and buffers, and what they are called. Throws Error before allocate().
std::string weights_digest(const ParameterStore& store);

// Writes a JSON file, which appears whole or not at all.
void save_calibration(const Calibration& calibration, const std::string& path);
// Throws Error(Fault::data) where there is no such file or it is none, or damaged.
Calibration load_calibration(const std::string& path);

// Which weights of its model a calibration may be used with: its ranges are exact for those that it was made on, and
// roughly those of the same model some steps of training later.
enum class WeightsOfCalibration { same, any };

// The layers for PreparedWeights::quantize. Throws Error(Fault::config), its line beginning with `path`, where the
// calibration is of another identity, or of other weights than those of the store and these have to be the same.
QuantizedLayers layers_of(const Calibration& calibration, const std::string& path,
                          const std::map<std::string, std::string>& identity, const ParameterStore& store,
                          WeightsOfCalibration weights = WeightsOfCalibration::same);

}  // namespace dtrain
