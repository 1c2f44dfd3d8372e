#include "models/listing.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "dtrain/core/profiler.h"

namespace dtrain::models {
namespace {

std::vector<WorkRecord> observe(const Classifier& model, ParameterStore& store) {
  Context& context = store.context();
  const Tensor image = context.zeros({1, model.image_size, model.image_size, store.image_channels()},
                                     store.parameters().front().compute.dtype());
  Profiler profiler(context);
  Tape tape(context, Mode::eval);
  std::vector<Var> auxiliary;
  profiler.begin_step(model.name);
  model.network(tape, tape.constant(image), &auxiliary);
  profiler.end_step();
  return profiler.take();
}

std::string line(const std::string& layer, const std::string& op, const std::string& input, const std::string& output,
                 int64_t parameters, int64_t multiply_adds) {
  return fmt::format("{:<40} {:<22} {:<22} {:<22} {:>12} {:>15}", layer, op, input, output, parameters, multiply_adds);
}

// Removes all parameters of the layer that owns `name`, and returns their number of elements.
int64_t take_layer(std::map<std::string, int64_t>& elements, const std::string& name) {
  const auto layer_of = [](const std::string& path) { return path.substr(0, path.rfind('.')); };
  int64_t sum = 0;
  for (auto& [other, count] : elements)
    if (layer_of(other) == layer_of(name)) sum += std::exchange(count, 0);
  return sum;
}

}  // namespace

std::vector<std::string> list_layers(const Classifier& model, ParameterStore& store) {
  std::map<std::string, int64_t> elements, work;  // by parameter, not listed yet
  int64_t parameters = 0;
  for (const Parameter& parameter : store.parameters()) {
    elements[parameter.name] = parameter.shape.count();
    parameters += parameter.shape.count();
  }
  for (const LayerWork& layer : model.layers) work[layer.weight] += layer.multiply_adds;

  std::vector<std::string> lines = {
      fmt::format("{}: {} classes, images of {} x {}", model.name, model.classes, model.image_size, model.image_size),
      fmt::format("{:<40} {:<22} {:<22} {:<22} {:>12} {:>15}", "Layer", "Op", "Input", "Output", "Parameters",
                  "Multiply-adds")};
  for (const WorkRecord& record : observe(model, store)) {
    if (record.level != WorkLevel::op) continue;
    int64_t own = 0, multiply_adds = 0;
    for (const std::string& name : record.parameters) {
      own += take_layer(elements, name);
      multiply_adds += std::exchange(work[name], 0);
    }
    const std::string layer = record.layer();
    lines.push_back(line(layer.empty() ? "-" : layer, record.name,
                         record.inputs.empty() ? "-" : record.inputs.front().to_string(), record.output.to_string(),
                         own, multiply_adds));
  }
  for (const auto& [name, count] : elements)
    if (count > 0) lines.push_back(line(name, "(not in this pass)", "-", "-", count, work[name]));
  lines.push_back(line("total", "", "", "", parameters, model.multiply_adds));
  return lines;
}

}  // namespace dtrain::models
