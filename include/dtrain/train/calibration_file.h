// Calibration files: int8 quantisation parameters of a model's layers.
#pragma once

#include <map>
#include <string>

#include "dtrain/train/calibrator.h"

namespace dtrain {

struct Calibration {
  std::map<std::string, std::string> identity{};  // must match at inference, by display name
  std::string weights{};                          // weights_digest() of its weights
  std::string ranges{};                           // name_of(RangeRule)
  uint64_t images = 0;                            // calibration images
  NamedLayers layers{};
};

// Digest of names and values of parameters and buffers. Throws Error before allocate().
std::string weights_digest(const ParameterStore& store);

// Writes JSON atomically.
void save_calibration(const Calibration& calibration, const std::string& path);
// Throws Error(Fault::data) for a missing, malformed or damaged file.
Calibration load_calibration(const std::string& path);

// Weights accepted for a calibration: those it was made with, or any weights of the model, for which its ranges are
// approximate, e.g. after more training steps.
enum class WeightsOfCalibration { same, any };

// Layers for PreparedWeights::quantize. Throws Error(Fault::config), prefixed by `path`, if the identity differs, or
// the weights do and must not.
QuantizedLayers layers_of(const Calibration& calibration, const std::string& path,
                          const std::map<std::string, std::string>& identity, const ParameterStore& store,
                          WeightsOfCalibration weights = WeightsOfCalibration::same);

}  // namespace dtrain
