#include "apps/cli/memory_fit.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

namespace dtrain::cli {
namespace {

// Peak memory of forward and backward pass at batch size `rows`, excluding parameters, in a separate context limited to
// `limit` bytes; none if it does not fit.
std::optional<size_t> bytes_of_step(const ClassifierStep& step, size_t limit, int64_t rows) {
  Machine machine = step.machine;
  machine.memory_limit = limit;
  machine.trial = true;
  try {
    const auto context = machine.make_context();
    ParameterStore store(*context);
    const models::Classifier model = models::make_classifier(store, step.info, step.options);
    store.allocate(/*seed=*/0, machine.compute());
    const size_t before = context->memory_stats().reserved;
    const int64_t size = step.options.image_size;
    Tape tape(*context);
    const Tensor images = context->zeros({rows, size, size, step.pixels.channels}, step.pixels.dtype);
    const Tensor labels = context->zeros({rows}, DType::i32);
    const Loss loss = model.loss(tape, tape.constant(images), labels);
    tape.backward(loss.total, &store);
    context->synchronize("memory of a step");
    return context->memory_stats().reserved - before;
  } catch (const Error& error) {
    if (error.fault() != Fault::resource) throw;
    return std::nullopt;
  }
}

}  // namespace

std::string advice_on_memory(Context& context, const ParameterStore& store, const ClassifierStep& step) {
  context.trim();
  // Optimiser state and input stay allocated; each trial allocates the parameters a second time.
  const MemoryStats stats = context.memory_stats();
  const size_t parameters = store.values().bytes() + store.grads().bytes();
  const size_t limit = stats.limit - (stats.in_use - std::min(stats.in_use, parameters));
  const auto fits = [&](int64_t rows) { return bytes_of_step(step, limit, rows); };
  for (int64_t rows = step.batch / 2; rows >= 1; rows /= 2) {
    const std::optional<size_t> bytes = fits(rows);
    if (!bytes) continue;
    const double room = static_cast<double>(limit - std::min(limit, parameters));
    int64_t more = std::min(static_cast<int64_t>(0.9 * room / static_cast<double>(*bytes) * static_cast<double>(rows)),
                            9 * step.batch / 10);
    while (more > rows && !fits(more)) more = 9 * more / 10;
    return fmt::format(": --batch_size={} would fit, about", std::max(more, rows));
  }
  return "; not even one image fits beside the parameters";
}

}  // namespace dtrain::cli
