// Comparison of predictions with published results and measured runs.
#pragma once

#include <string>
#include <vector>

#include "apps/scale/model.h"

namespace dtrain::scale {

// A published efficiency: throughput per GPU on `gpus` with `batch` images each, relative to `base_gpus` with the
// device's batch.
struct PublishedCurve {
  std::string name, source;
  MeasuredRate rate;  // of one GPU in the base
  ScaleOptions options;
  int64_t base_gpus = 1, gpus = 1;
  double batch = 0;
  double efficiency = 0;  // published
  bool fitted = false;    // a model parameter was fitted to it: not a test
  std::string assumptions;
};
const std::vector<PublishedCurve>& published_curves();
double predicted_efficiency(const PublishedCurve& curve);

// Published against predicted bus bandwidth by message size, in an 8-GPU host with NVSwitch: bytes and GB/s.
struct BusBandwidth {
  double bytes, published, predicted;
};
std::vector<BusBandwidth> bus_bandwidths();

// A measured run: {"ranks", "step_seconds", "exposed_seconds", "batch"} of the file's "runs"; batch defaults to the
// device's.
struct MeasuredRun {
  int64_t ranks = 1;
  double batch = 0, step_seconds = 0, exposed_seconds = 0;
};
std::vector<MeasuredRun> read_runs(const std::string& path, double batch);

std::string validation_report();
std::string comparison_table(const DeviceStep& device, const ScaleOptions& options,
                             const std::vector<MeasuredRun>& runs);

}  // namespace dtrain::scale
