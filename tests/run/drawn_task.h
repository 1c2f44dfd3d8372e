// Small task with its training set-up, and a recording observer, for tests of runs.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "dtrain/layers.h"
#include "dtrain/run/evaluation.h"
#include "dtrain/run/run.h"
#include "tests/testing.h"

namespace dtrain {

inline constexpr int64_t kBatch = 4, kInputs = 6, kClasses = 3;

// Random samples by index; the class is the argmax of the first inputs.
class DrawnTask : public Task {
 public:
  DrawnTask(Context& context, Group& group, int micro_steps = 1)
      : Task(micro_steps),
        store(context),
        hidden(store, "hidden", kInputs, kClasses, Init::normal(0.5f)),
        group_(group) {
    store.allocate(7);
    for (int i = 0; i < micro_steps; ++i)
      batches_.push_back({context.empty({kBatch, kInputs}), context.empty({kBatch}, DType::i32)});
  }

  void open(uint64_t cursor) override { cursor_ = cursor; }
  BatchInfo load(int micro_step) override {
    draw(batches_.at(static_cast<size_t>(micro_step)), cursor_ + static_cast<uint64_t>(group_.rank() * kBatch));
    cursor_ += static_cast<uint64_t>(group_.size() * kBatch);
    return {.samples = {cursor_}, .cursor = cursor_};
  }
  Loss forward(Tape& tape, int micro_step) override {
    const Batch& batch = batches_.at(static_cast<size_t>(micro_step));
    return softmax_cross_entropy(tape, hidden(tape, tape.constant(batch.images)), batch.labels);
  }
  std::future<Evaluation> evaluate(const EvaluationRequest& request) override {
    EvaluationLoop loop{.batches = 5, .batch = kBatch * group_.size()};
    uint64_t next = 1'000'000 + static_cast<uint64_t>(group_.rank());
    loop.load = [&]() -> std::optional<int64_t> {
      draw(batches_[0], next += 1000);
      return kBatch;
    };
    loop.forward = [this](Tape& tape) { return forward(tape, 0); };
    return evaluate_batches(store.context(), group_, request, loop);
  }
  void describe(TrainState& state) const override { state.identity["model"] = "drawn"; }

  ParameterStore store;
  Linear hidden;

 protected:
  struct Batch {
    Tensor images, labels;
  };
  void draw(const Batch& batch, uint64_t first) {
    const Array x = random_array({kBatch, kInputs}, first);
    std::vector<int32_t> labels;
    for (int64_t row = 0; row < kBatch; ++row) {
      int32_t best = 0;
      for (int32_t c = 1; c < kClasses; ++c)
        if (x[row * kInputs + c] > x[row * kInputs + best]) best = c;
      labels.push_back(best);
    }
    Context& context = store.context();
    context.copy(to_device(context, x), batch.images);
    context.upload(labels.data(), batch.labels);
  }

  Group& group_;
  std::vector<Batch> batches_;  // by micro-step
  uint64_t cursor_ = 0;
};

// Records all events.
class Diary : public Observer {
 public:
  void begun(const Begun& event) override { add("begun", event.step); }
  void stepped(const Stepped& event) override {
    add("stepped", event.step);
    losses[event.step] = event.loss;
    seconds[event.step] = event.seconds;
    if (event.shown) shown.push_back(event.step);
  }
  void evaluating(const Evaluating& event) override {
    if (event.batches == 0) add("evaluating", event.step);
  }
  void evaluated(const Evaluated& event) override {
    add("evaluated", event.step);
    last = event;
  }
  void saved(const Saved& event) override { saves.push_back(event.report.step); }
  void noticed(const Noticed& event) override { notices.push_back(event.text); }
  void ended(const Ended& event) override { add("ended", event.step); }

  std::vector<std::string> entries, notices;
  std::vector<uint64_t> shown, saves;
  std::map<uint64_t, double> losses, seconds;
  Evaluated last;

 private:
  void add(const char* what, uint64_t step) { entries.push_back(concat(what, " ", step)); }
};

// One rank with task, optimizer and trainer.
struct Rig {
  explicit Rig(Context& context, Group& group, Communicator* communicator = nullptr, int micro_steps = 1)
      : task(context, group, micro_steps),
        optimizer(task.store, {.update = {.rule = UpdateRule::momentum}}),
        trainer(task.store, optimizer, {.base = 0.1},
                {.micro_steps = micro_steps, .seed = 5, .communicator = communicator}) {}
  std::vector<float> values() { return values_of<float>(task.store.context(), task.store.values()); }

  DrawnTask task;
  Optimizer optimizer;
  Trainer trainer;
};

class RunTest : public testing::Test {
 protected:
  RunOptions options(uint64_t steps) const {
    RunOptions result;
    result.cadence.total_steps = steps;
    result.cadence.show_every = 3;
    result.batch = kBatch;
    return result;
  }
  RunOptions saving(uint64_t steps) const {
    RunOptions result = options(steps);
    result.train_dir = directory.path().string();
    result.cadence.save_every_steps = 2;
    return result;
  }

  TempDirectory directory;
  std::unique_ptr<Context> context = make_cpu_context({.threads = 1});
  std::unique_ptr<Group> group = make_single_group();
};

}  // namespace dtrain
