// A detector on the processor with the weights of a file, whoever's names they have.
#pragma once

#include <memory>
#include <string>

#include "apps/mask_rcnn/settings.h"
#include "models/detection/detector.h"
#include "models/detection/weight_files.h"

namespace dtrain::mask_rcnn {

// Sets the number of classes to that of a file, where it has one.
void take_classes(Settings& settings, const std::string& path);
// Says for people which tensors were cast and which names were taken without a prefix, if any.
void print_conversions(const WeightReport& report, const std::string& path);
// Throws Error(Fault::checkpoint) where something is missing or has another shape.
void require_complete(const WeightReport& report, const std::string& path);

// Of as many classes as the file has. What its program does not predict for background is 0. Throws
// Error(Fault::checkpoint) where nothing fits.
struct LoadedDetector {
  LoadedDetector(const Settings& settings, const std::string& path);

  std::unique_ptr<Context> context;
  ParameterStore store;
  models::Detector detector;
  models::LoadedWeights weights;
};

}  // namespace dtrain::mask_rcnn
