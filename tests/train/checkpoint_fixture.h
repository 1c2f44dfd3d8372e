// Small model with its states, for tests of checkpoints.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "dtrain/autograd/parameters.h"
#include "dtrain/train/checkpoint.h"
#include "tests/testing.h"

namespace dtrain {

// Convolution, batch norm and linear layer of odd sizes, so that arenas contain padding; with momentum.
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

  // Fills all arenas with values that depend on `step`.
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

  // All state that must survive bitwise.
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
  const StepState device{.loss_scale = 12345.678f, .double_after = 1000, .good_steps = 7, .skipped = 3};
  return {step, 16 * step, device, {{"model", "small"}, {"classes", "3"}}, {{"threads", "1"}}};
}

// State of a model after `step` steps.
inline std::vector<float> contents_at(uint64_t step) {
  SmallModel model;
  model.advance_to(step);
  return model.contents();
}

// Advances to `step` and saves synchronously.
inline void save_step(Checkpointer& checkpointer, SmallModel& model, uint64_t step) {
  model.advance_to(step);
  checkpointer.save(state_at(step));
  checkpointer.wait();
}

inline void ignore(const std::string&) {}

inline CheckpointOptions options_for(const std::string& train_dir) {
  return {.train_dir = train_dir, .keep = 2, .asynchronous = false};
}

// Saves steps `from` to `to` through `files`.
inline void save_steps(const std::string& train_dir, FileSystem& files, uint64_t from, uint64_t to) {
  SmallModel model;
  Checkpointer checkpointer(model.store, options_for(train_dir), ignore, files);
  for (uint64_t step = from; step <= to; ++step) save_step(checkpointer, model, step);
}

// Step found by a restart, after a bitwise comparison and a check for leftovers.
inline uint64_t step_found(const std::string& train_dir) {
  SmallModel model;
  Checkpointer checkpointer(model.store, options_for(train_dir), ignore);
  const auto report = checkpointer.restore_latest(state_at(0));
  if (!report) return 0;
  EXPECT_EQ(report->state.cursor, 16 * report->state.step);
  EXPECT_EQ(model.contents(), contents_at(report->state.step));
  for (const auto& entry : std::filesystem::directory_iterator(train_dir + "/checkpoints"))
    EXPECT_EQ(entry.path().string().find(".tmp-"), std::string::npos) << entry.path() << " left over";
  return report->state.step;
}

}  // namespace dtrain
