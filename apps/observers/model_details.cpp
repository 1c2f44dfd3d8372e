#include "apps/observers/model_details.h"

#include <cmath>

#include <fmt/format.h>

namespace dtrain::observers {
namespace {

std::vector<float> values_of(Context& context, const Tensor& values) {
  std::vector<float> host(static_cast<size_t>(values.shape().count()));
  context.download(values, host.data(), "histogram");
  return host;
}

// Factor that the update applies to the gradient arena.
float gradient_factor(const Trainer& trainer, double loss_scale) {
  const TrainerOptions& options = trainer.options();
  const int ranks = options.communicator && !options.independent ? options.communicator->size() : 1;
  return static_cast<float>(1 / (options.micro_steps * ranks * loss_scale));
}

void add_logarithms(const std::vector<float>& gradients, Histogram& histogram) {
  std::vector<float> logarithms;
  for (const float gradient : gradients)
    if (gradient != 0) logarithms.push_back(std::log(std::abs(gradient)));
  histogram.add(logarithms);
}

void add_histogram(const std::string& tag, const std::vector<float>& values, Summary& summary) {
  Histogram histogram;
  histogram.add(values);
  summary.histogram(tag, histogram);
}

}  // namespace

void add_details(const ModelDetails& details, const Trainer& trainer, double loss_scale, Summary& summary) {
  if (details.verbosity < 2) return;
  Context& context = trainer.store().context();
  const float factor = gradient_factor(trainer, loss_scale);
  Histogram logarithms;
  for (const Parameter& parameter : trainer.store().parameters()) {
    if (parameter.options().frozen) continue;
    std::vector<float> gradients = values_of(context, parameter.grad);
    for (float& gradient : gradients) gradient *= factor;
    add_logarithms(gradients, logarithms);
    if (details.verbosity < 3) continue;
    add_histogram(parameter.name + "/gradients", gradients, summary);
    add_histogram(parameter.name, values_of(context, parameter.value), summary);
  }
  summary.histogram("log_gradients_summary/log_gradients", logarithms);
  if (details.verbosity < 3 || !details.pictures) return;
  int number = 0;
  for (const cli::Picture& picture : details.pictures())
    summary.image(fmt::format("images/image/{}", number++), picture.width, picture.height, picture.png);
}

StepDetails details_of(ModelDetails details, const Trainer& trainer) {
  return [shown = std::move(details), &trainer](const Stepped&, double loss_scale, Summary& summary) {
    add_details(shown, trainer, loss_scale, summary);
  };
}

}  // namespace dtrain::observers
