// The step of one device, layer by layer: the input of all predictions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "apps/cli/machine.h"

namespace dtrain::scale {

// One that owns parameters.
struct LayerTime {
  std::string name;
  double gradient_bytes = 0;    // in fp32
  double backward_seconds = 0;  // from when the gradient of the layer before was complete until its own is
};

struct DeviceStep {
  std::string model, device;
  double batch = 0;
  double forward_seconds = 0, update_seconds = 0;
  std::vector<LayerTime> layers;  // in the order in which backward completes them

  double backward_seconds() const;
  double seconds() const { return forward_seconds + backward_seconds() + update_seconds; }
  double gradient_bytes() const;
};

// The keys are the members above: {"model", "device", "batch", "forward_seconds", "update_seconds", "layers": [{"name",
// "gradient_bytes", "backward_seconds"}, ...]}.
nlohmann::ordered_json to_json(const DeviceStep& step);
// Throws Error with the file and the key where one is missing, of the wrong type, negative, or there is no layer.
DeviceStep read_layers(const std::string& path);

// What is known of a step without its layers.
struct MeasuredRate {
  std::string model, device = "GPU";
  double images_per_second = 0, batch = 0, update_seconds = 0;
  int64_t classes = 1000;
  int64_t image_size = 0;  // 0: the model's own
};

// The measured step, less the update, is divided by multiply-adds: forward takes each layer's once, and backward twice,
// for the gradients of weights and of inputs, but in the first layer, whose input needs none. Layers without
// multiply-adds (batch norm) are given no time: theirs is spread over the others. Throws Error for an unknown model.
DeviceStep derive_layers(const MeasuredRate& rate);

// A step measured on this machine's device; see measure_layers.
struct MeasureOptions {
  std::string model;
  cli::Machine machine;
  int64_t batch = 0, image_size = 0, classes = 1000, steps = 5;
};

// Runs two steps to warm up and then `steps` on drawn numbers; each time is the median. Tape::on_ready tells when a
// gradient is complete, by the device's clock. A GPU runs the step op by op, not as a graph: where batches are small,
// the time in which it waits for the host is in it.
DeviceStep measure_layers(const MeasureOptions& options);

// "layer1.0.conv1" of "layer1.0.conv1.weight".
std::string layer_of(const std::string& parameter);

}  // namespace dtrain::scale
