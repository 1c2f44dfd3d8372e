// Layer times of a step on one device: input of all predictions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "apps/cli/machine.h"

namespace dtrain::scale {

// A layer with parameters.
struct LayerTime {
  std::string name;
  double gradient_bytes = 0;    // in fp32
  double backward_seconds = 0;  // time between completion of the previous layer's gradient and its own
};

struct DeviceStep {
  std::string model, device;
  double batch = 0;
  double forward_seconds = 0, update_seconds = 0;
  std::vector<LayerTime> layers;  // in backward order

  double backward_seconds() const;
  double seconds() const { return forward_seconds + backward_seconds() + update_seconds; }
  double gradient_bytes() const;
};

// The keys are the members above: {"model", "device", "batch", "forward_seconds", "update_seconds", "layers": [{"name",
// "gradient_bytes", "backward_seconds"}, ...]}.
nlohmann::ordered_json to_json(const DeviceStep& step);
// Throws Error with file and key if one is missing, of the wrong type or negative, or if there are no layers.
DeviceStep read_layers(const std::string& path);

// A step without layer times.
struct MeasuredRate {
  std::string model, device = "GPU";
  double images_per_second = 0, batch = 0, update_seconds = 0;
  int64_t classes = 1000;
  int64_t image_size = 0;  // 0: the model's own
};

// Divides the measured step minus the update in proportion to multiply-adds: once for forward, twice for backward
// (weight and input gradients; the first layer has no input gradient). Layers without multiply-adds (batch norm) get no
// time; the other layers include it. Throws Error for an unknown model.
DeviceStep derive_layers(const MeasuredRate& rate);

// Options of measure_layers.
struct MeasureOptions {
  std::string model;
  cli::Machine machine;
  int64_t batch = 0, image_size = 0, classes = 1000, steps = 5;
};

// Runs two warm-up steps and then `steps` on synthetic data; times are medians. Tape::on_ready timestamps complete
// gradients by the device's clock. A GPU runs eager steps, not CUDA graphs: at small batches, times include launch
// overhead.
DeviceStep measure_layers(const MeasureOptions& options);

// "layer1.0.conv1" of "layer1.0.conv1.weight".
std::string layer_of(const std::string& parameter);

}  // namespace dtrain::scale
