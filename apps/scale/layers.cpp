#include "apps/scale/layers.h"

#include <numeric>
#include <unordered_map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/cli/vision.h"
#include "apps/scale/json.h"
#include "dtrain/core/error.h"
#include "dtrain/models/catalog.h"

namespace dtrain::scale {

double DeviceStep::backward_seconds() const {
  return std::accumulate(layers.begin(), layers.end(), 0.0,
                         [](double sum, const LayerTime& layer) { return sum + layer.backward_seconds; });
}

double DeviceStep::gradient_bytes() const {
  return std::accumulate(layers.begin(), layers.end(), 0.0,
                         [](double sum, const LayerTime& layer) { return sum + layer.gradient_bytes; });
}

std::string layer_of(const std::string& parameter) { return parameter.substr(0, parameter.rfind('.')); }

nlohmann::ordered_json to_json(const DeviceStep& step) {
  nlohmann::ordered_json layers = nlohmann::ordered_json::array();
  for (const LayerTime& layer : step.layers)
    layers.push_back(
        {{"name", layer.name}, {"gradient_bytes", layer.gradient_bytes}, {"backward_seconds", layer.backward_seconds}});
  return {{"model", step.model},
          {"device", step.device},
          {"batch", step.batch},
          {"forward_seconds", step.forward_seconds},
          {"update_seconds", step.update_seconds},
          {"layers", std::move(layers)}};
}

DeviceStep read_layers(const std::string& path) {
  const JsonFile file(path);
  const JsonObject root = file.root();
  DeviceStep step;
  step.model = root.text("model");
  step.device = root.text("device");
  step.batch = root.number("batch");
  step.forward_seconds = root.number("forward_seconds");
  step.update_seconds = root.number("update_seconds");
  for (const JsonObject& layer : root.objects("layers"))
    step.layers.push_back({layer.text("name"), layer.number("gradient_bytes"), layer.number("backward_seconds")});
  if (step.batch <= 0) throw Error(path + ": batch: expected a number above 0");
  if (step.seconds() <= 0) throw Error(path + ": all times are 0");
  if (step.gradient_bytes() > 1e15) throw Error(path + ": layers: expected gradient_bytes of 1e15 together at most");
  return step;
}

DeviceStep derive_layers(const MeasuredRate& rate) {
  const auto context = make_cpu_context();
  ParameterStore store(*context);
  const models::Classifier model = models::make_classifier(store, cli::find_model(rate.model, "imagenet"),
                                                           {.classes = rate.classes, .image_size = rate.image_size});
  // In units of one multiply-add per image.
  std::unordered_map<std::string, double> backward;
  double forward = 0, total = 0;
  for (const models::LayerWork& layer : model.layers) {
    const auto work = static_cast<double>(layer.multiply_adds);
    const bool first = &layer == &model.layers.front();
    backward[layer_of(layer.weight)] = first ? work : 2 * work;
    forward += work;
    total += first ? 2 * work : 3 * work;
  }
  const double step = rate.batch / rate.images_per_second;
  DT_CHECK(rate.update_seconds < step, "an update of ", 1e3 * rate.update_seconds, " ms in a step of ", 1e3 * step,
           " ms: ", rate.batch, " images at ", rate.images_per_second, " per second");
  const double seconds = (step - rate.update_seconds) / total;

  DeviceStep result{model.name, rate.device, rate.batch, forward * seconds, rate.update_seconds, {}};
  for (auto parameter = store.parameters().rbegin(); parameter != store.parameters().rend(); ++parameter) {
    const std::string name = layer_of(parameter->name);
    if (result.layers.empty() || result.layers.back().name != name)
      result.layers.push_back({name, 0, backward.contains(name) ? backward.at(name) * seconds : 0});
    result.layers.back().gradient_bytes += 4 * static_cast<double>(parameter->shape.count());
  }
  return result;
}

}  // namespace dtrain::scale
