// A small model and its states, for the tests of checkpoints.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "libdtrain/autograd/parameters.h"
#include "libdtrain/train/checkpoint.h"

namespace dtrain {

// A convolution, a batch norm and a linear layer with odd sizes, so that the arenas hold padding, and momentum.
struct SmallModel {
  explicit SmallModel(int64_t classes = 3) : context(make_cpu_context({.threads = 1})), store(*context) {
    store.add("conv.weight", {5, 3, 2, 3}, Init::normal(1), {.layout = Layout::krsc});
    store.add("bn.weight", {5}, Init::constant(1));
    store.add("bn.bias", {5}, Init::constant(0));
    store.add_buffer("bn.running_mean", {5}, 0);
    store.add_buffer("bn.running_var", {5}, 1);
    store.add("fc.weight", {classes, 5}, Init::normal(1));
    store.allocate(1);
    store.optimizer_state(0);
  }

  // Fills every entry of every arena with values that depend on `step`.
  void advance_to(uint64_t step) {
    float next = static_cast<float>(step) * 1000.25f;
    const auto fill = [&](const Tensor& x) {
      for (float& value : x.span<float>()) value = (next += 0.37f);
    };
    for (Parameter& parameter : store.parameters()) {
      fill(parameter.value);
      fill(store.optimizer_state(0).slice(parameter.offset, parameter.offset + parameter.shape.count()));
    }
    for (Buffer& buffer : store.buffers()) fill(buffer.value);
  }

  // All that must survive, bit for bit.
  std::vector<float> contents() {
    std::vector<float> all;
    for (const Tensor& arena : {store.values(), store.buffer_values(), store.optimizer_state(0)})
      all.insert(all.end(), arena.span<float>().begin(), arena.span<float>().end());
    return all;
  }

  std::unique_ptr<Context> context;
  ParameterStore store;
};

inline TrainState state_at(uint64_t step) {
  return {step, 16 * step, {{"model", "small"}, {"classes", "3"}}, {{"threads", "1"}}};
}

// What a model holds after `step` steps.
inline std::vector<float> contents_at(uint64_t step) {
  SmallModel model;
  model.advance_to(step);
  return model.contents();
}

// Trains to `step` and saves there, in the foreground.
inline void save_step(Checkpointer& checkpointer, SmallModel& model, uint64_t step) {
  model.advance_to(step);
  checkpointer.save(state_at(step));
  checkpointer.wait();
}

}  // namespace dtrain
