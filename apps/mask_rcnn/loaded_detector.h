// A detector on the CPU with weights from a file, in any supported naming.
#pragma once

#include <memory>
#include <string>

#include "apps/mask_rcnn/settings.h"
#include "dtrain/models/detection/detector.h"
#include "dtrain/models/detection/weight_files.h"

namespace dtrain::mask_rcnn {

// Sets the number of classes from a file, if it determines one.
void take_classes(Settings& settings, const std::string& path);
// Logs tensors that were cast and names whose prefix was removed, if any.
void print_conversions(const WeightReport& report, const std::string& path);
// Throws Error(Fault::checkpoint) for missing tensors and wrong shapes.
void require_complete(const WeightReport& report, const std::string& path);

// With the number of classes of the file. Outputs that its program does not predict for background are 0. Throws
// Error(Fault::checkpoint) if no tensor fits.
struct LoadedDetector {
  LoadedDetector(const Settings& settings, const std::string& path);

  std::unique_ptr<Context> context;
  ParameterStore store;
  models::Detector detector;
  models::LoadedWeights weights;
};

}  // namespace dtrain::mask_rcnn
