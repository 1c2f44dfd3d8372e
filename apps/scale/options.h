// Flags of dtrain-scale.
#pragma once

#include <string>
#include <vector>

#include "apps/cli/flags.h"
#include "apps/cli/options/ranks.h"
#include "apps/scale/checkpointing.h"
#include "apps/scale/model.h"

namespace dtrain::scale {

struct Options {
  // The device
  std::string layers, model = "resnet50_v1.5", device_name = "GPU";
  std::optional<double> images_per_sec;
  int64_t batch_size = 0, image_size = 0, num_classes = 1000;
  double update_ms = 0;
  bool measure = false;
  std::string layers_out, device = "cpu", precision = "fp32";
  int64_t threads = 0, steps = 5;
  // The network
  std::vector<std::string> gpus = {"8", "16", "32", "64", "128", "256", "512", "1024", "2048", "4096"};
  int64_t gpus_per_host = 8;
  std::string inside = "nvswitch-h200", between = "ib3200", algorithm = "auto";
  std::optional<double> inside_gbs, inside_us, between_gbs, between_us;
  double collective_us = 10;
  // The step
  cli::BucketFlags buckets;
  double jitter = 0.01;
  std::optional<double> half_batch;
  std::string wire_precision = "fp32";
  bool overlap = true;
  int64_t global_batch = 0;
  // Failures
  double gpu_mtbf_hours = 50000, checkpoint_seconds = 5, restart_seconds = 300;
  // What is done
  bool validate = false, json = false;
  std::string measured, plot;

  std::vector<int64_t> gpu_counts() const;  // ascending, unique
  Network network() const;
  ScaleOptions scale() const;
  FailureModel failures() const;
  // Device from --layers, or derived from --images_per_sec.
  DeviceStep device_step() const;
  MeasureOptions measurement() const;
};

// Binds the flags to `options`, which must outlive the set.
cli::FlagSet declare_flags(Options& options);
// Throws Error for conflicting flags.
void check(const Options& options);

}  // namespace dtrain::scale
