#include "apps/cnn_benchmarks/memory_fit.h"

#include <fmt/format.h>

namespace dtrain::cnn_benchmarks {
namespace {

// The most that forward and backward pass of a batch of `rows` images take beside the parameters.
size_t bytes_of_step(const Config& config, const PixelNormalization& pixels, int64_t rows) {
  const auto context = config.machine.make_context();
  ParameterStore store(*context);
  const models::Classifier model = models::make_classifier(store, config.info, config.options);
  store.allocate(/*seed=*/0, config.machine.compute());
  const size_t before = context->memory_stats().in_use;
  const int64_t size = config.options.image_size;
  Tape tape(*context);
  const Tensor images = context->zeros({rows, size, size, pixels.channels}, pixels.dtype);
  const Tensor labels = context->zeros({rows}, DType::i32);
  const Classification result = softmax_cross_entropy(tape, model.forward(tape, tape.constant(images)), labels);
  tape.backward(result.loss, &store);
  context->synchronize("memory of a step");
  return context->memory_stats().peak_in_use - before;
}

}  // namespace

std::string advice_on_memory(Session& session) {
  constexpr double kSafe = 0.9;  // for the input, and for pieces between blocks
  session.context->trim();
  const MemoryStats stats = session.context->memory_stats();
  const double room = kSafe * static_cast<double>(stats.limit - stats.in_use);
  for (int64_t rows = session.config.batch / 2; rows >= 1; rows /= 2) {
    try {
      const auto bytes = static_cast<double>(bytes_of_step(session.config, session.pixels(), rows));
      const auto fits = static_cast<int64_t>(room / bytes * static_cast<double>(rows));
      if (fits >= 1) return fmt::format(": --batch_size={} would fit, about", std::min(fits, session.config.batch - 1));
    } catch (const Error& error) {
      if (error.fault() != Fault::resource) throw;
    }
  }
  return "; not even one image fits beside the parameters";
}

}  // namespace dtrain::cnn_benchmarks
