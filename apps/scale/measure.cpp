// When the gradients of each layer are complete, measured on this machine.
#include <algorithm>
#include <thread>
#include <unordered_map>

#include <fmt/format.h>

#include "apps/cli/vision.h"
#include "apps/scale/layers.h"
#include "libdtrain/core/gpu_info.h"
#include "libdtrain/core/rng.h"
#include "libdtrain/ops/loss.h"
#include "libdtrain/ops/pointwise.h"
#include "libdtrain/train/optimizer.h"

namespace dtrain::scale {
namespace {

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<int64_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

struct StepMoments {
  Moment begin, backward, update, end;
  std::vector<std::pair<const Parameter*, Moment>> ready;  // in the order of backward
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
        images_(context_->empty({o.batch, model_.image_size, model_.image_size, 3})),
        labels_(context_->empty({o.batch}, DType::i32)) {
    RandomStream random(1, 0);
    std::vector<float> pixels(static_cast<size_t>(images_.count()));
    for (float& pixel : pixels) pixel = random.uniform(-1, 1);
    std::vector<int32_t> labels(static_cast<size_t>(o.batch));
    for (int32_t& label : labels) label = static_cast<int32_t>(random.below(static_cast<uint32_t>(model_.classes)));
    context_->upload(pixels.data(), images_);
    context_->upload(labels.data(), labels_);
    normalization_.dtype = o.machine.precision;
    normalization_.channels = o.machine.compute().image_channels;
    context_->set_step_state({});
  }

  StepMoments run() {
    context_->set_scalars({.learning_rate = 0.01f, .gradient_scale = 1, .step = steps_++, .seed = 1});
    StepMoments moments;
    moments.begin = context_->record();
    Tape tape(*context_);
    tape.on_ready([&](const Parameter& parameter) { moments.ready.emplace_back(&parameter, context_->record()); });
    const Tensor images = context_->is_cpu() ? images_ : normalize_pixels(*context_, images_, normalization_);
    const Var loss = softmax_cross_entropy(tape, model_.forward(tape, tape.constant(images)), labels_).loss;
    moments.backward = context_->record();
    tape.backward(loss, &store_);
    moments.update = context_->record();
    optimizer_.step();
    moments.end = context_->record();
    context_->wait(moments.end);
    return moments;
  }

  Context& context() { return *context_; }
  const std::string& name() const { return model_.name; }

 private:
  std::unique_ptr<Context> context_;
  ParameterStore store_;
  models::Classifier model_;
  Optimizer optimizer_;
  Tensor images_, labels_;
  PixelNormalization normalization_;
  uint64_t steps_ = 0;
};

// The layers of one step. What backward does behind the last gradient counts to the last layer.
std::vector<LayerTime> layers_of(Context& context, const StepMoments& moments) {
  std::unordered_map<std::string, size_t> last;  // a layer is complete with the last of its parameters
  std::unordered_map<std::string, double> bytes;
  for (size_t i = 0; i < moments.ready.size(); ++i) {
    const std::string name = layer_of(moments.ready[i].first->name);
    last[name] = i;
    bytes[name] += 4 * static_cast<double>(moments.ready[i].first->shape.count());
  }
  std::vector<LayerTime> layers;
  Moment before = moments.backward;
  for (size_t i = 0; i < moments.ready.size(); ++i) {
    const std::string name = layer_of(moments.ready[i].first->name);
    if (last.at(name) != i) continue;
    const Moment now = i + 1 == moments.ready.size() ? moments.update : moments.ready[i].second;
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
    const StepMoments moments = model.run();
    forward.push_back(context.seconds_between(moments.begin, moments.backward));
    update.push_back(context.seconds_between(moments.update, moments.end));
    runs.push_back(layers_of(context, moments));
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
