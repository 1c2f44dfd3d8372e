// Predictions beside published curves and beside measured runs.
#pragma once

#include <string>
#include <vector>

#include "apps/scale/model.h"

namespace dtrain::scale {

// A published efficiency: the rate per GPU on `gpus` with `batch` images each, over that on `base_gpus` with the
// device's own batch.
struct PublishedCurve {
  std::string name, source;
  MeasuredRate rate;  // one GPU's in the base
  ScaleOptions options;
  int64_t base_gpus = 1, gpus = 1;
  double batch = 0;
  double efficiency = 0;  // published
  bool fitted = false;    // a parameter of the model was chosen to match it: no test
  std::string assumptions;
};
const std::vector<PublishedCurve>& published_curves();
double predicted_efficiency(const PublishedCurve& curve);

// Published against predicted bus bandwidth by message size, in an 8-GPU host with NVSwitch: bytes and GB/s.
struct BusBandwidth {
  double bytes, published, predicted;
};
std::vector<BusBandwidth> bus_bandwidths();

// A run that was made: {"ranks", "step_seconds", "exposed_seconds", "batch"} of the file's "runs"; the batch is that of
// the device where the file has none.
struct MeasuredRun {
  int64_t ranks = 1;
  double batch = 0, step_seconds = 0, exposed_seconds = 0;
};
std::vector<MeasuredRun> read_runs(const std::string& path, double batch);

std::string validation_report();
std::string comparison_table(const DeviceStep& device, const ScaleOptions& options,
                             const std::vector<MeasuredRun>& runs);

}  // namespace dtrain::scale
