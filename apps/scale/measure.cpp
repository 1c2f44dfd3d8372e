// Measures layer times on this machine by completion of gradients.
#include <thread>
#include <unordered_map>

#include <fmt/format.h>

#include "apps/cli/synthetic_batch.h"
#include "apps/cli/vision.h"
#include "apps/scale/layers.h"
#include "dtrain/core/gpu_info.h"
#include "dtrain/ops/pointwise.h"
#include "dtrain/train/metrics.h"
#include "dtrain/train/optimizer.h"

namespace dtrain::scale {
namespace {

struct StepEvents {
  Event begin, backward, update, end;
  std::vector<std::pair<const Parameter*, Event>> ready;  // in backward order
};

class MeasuredModel {
 public:
  explicit MeasuredModel(const MeasureOptions& o)
      : context_(o.machine.make_context()),
        store_(*context_),
        model_(models::make_classifier(store_, cli::find_model(o.model, "imagenet"),
                                       {.classes = o.classes, .image_size = o.image_size})),
        optimizer_((store_.allocate(1, o.machine.compute()), store_),
                   {.update = {.rule = UpdateRule::momentum, .momentum = 0.9f}, .weight_decay = 1e-4f}),
        batch_(cli::make_synthetic_batch(*context_, o.batch, model_.image_size, model_.classes)) {
    normalization_.dtype = o.machine.precision;
    normalization_.channels = o.machine.compute().image_channels;
    context_->set_step_state({});
  }

  StepEvents run() {
    context_->set_scalars({.learning_rate = 0.01f, .gradient_scale = 1, .step = steps_++, .seed = 1});
    StepEvents events;
    events.begin = context_->record();
    Tape tape(*context_);
    tape.on_ready([&](const Parameter& parameter) { events.ready.emplace_back(&parameter, context_->record()); });
    const Tensor images =
        context_->is_cpu() ? batch_.images : normalize_pixels(*context_, batch_.images, normalization_);
    const Var loss = model_.loss(tape, tape.constant(images), batch_.labels).total;
    events.backward = context_->record();
    tape.backward(loss, &store_);
    events.update = context_->record();
    optimizer_.step();
    events.end = context_->record();
    context_->wait(events.end);
    return events;
  }

  Context& context() { return *context_; }
  const std::string& name() const { return model_.name; }

 private:
  std::unique_ptr<Context> context_;
  ParameterStore store_;
  models::Classifier model_;
  Optimizer optimizer_;
  cli::SyntheticBatch batch_;
  PixelNormalization normalization_;
  uint64_t steps_ = 0;
};

// Layer times of one step. The rest of backward after the last gradient counts to the last layer.
std::vector<LayerTime> layers_of(Context& context, const StepEvents& events) {
  std::unordered_map<std::string, size_t> last;  // a layer is complete when its last parameter is
  std::unordered_map<std::string, double> bytes;
  for (size_t i = 0; i < events.ready.size(); ++i) {
    const std::string name = layer_of(events.ready[i].first->name);
    last[name] = i;
    bytes[name] += 4 * static_cast<double>(events.ready[i].first->shape.count());
  }
  std::vector<LayerTime> layers;
  Event before = events.backward;
  for (size_t i = 0; i < events.ready.size(); ++i) {
    const std::string name = layer_of(events.ready[i].first->name);
    if (last.at(name) != i) continue;
    const Event now = i + 1 == events.ready.size() ? events.update : events.ready[i].second;
    layers.push_back({name, bytes.at(name), context.seconds_between(before, now)});
    before = now;
  }
  return layers;
}

}  // namespace

DeviceStep measure_layers(const MeasureOptions& options) {
  MeasuredModel model(options);
  Context& context = model.context();
  for (int i = 0; i < 2; ++i) model.run();
  std::vector<double> forward, update;
  std::vector<std::vector<LayerTime>> runs;
  for (int64_t i = 0; i < options.steps; ++i) {
    const StepEvents events = model.run();
    forward.push_back(context.seconds_between(events.begin, events.backward));
    update.push_back(context.seconds_between(events.update, events.end));
    runs.push_back(layers_of(context, events));
  }
  DeviceStep step{model.name(),
                  options.machine.gpu
                      ? gpu_info(options.machine.index).name
                      : fmt::format("CPU, {} of {} cores", context.threads(), std::thread::hardware_concurrency()),
                  static_cast<double>(options.batch),
                  median(forward),
                  median(update),
                  runs.front()};
  for (size_t i = 0; i < step.layers.size(); ++i) {
    std::vector<double> seconds;
    for (const std::vector<LayerTime>& run : runs) seconds.push_back(run[i].backward_seconds);
    step.layers[i].backward_seconds = median(seconds);
  }
  return step;
}

}  // namespace dtrain::scale
