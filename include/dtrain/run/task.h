// Task: the program's part of a training (batches, forward pass, evaluation, identity). A run does everything else.
#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <string>
#include <vector>

#include "dtrain/train/checkpoint.h"
#include "dtrain/train/loss.h"

namespace dtrain {

// Metadata of a batch.
struct BatchInfo {
  std::vector<uint64_t> samples{};  // record numbers, for the report of a diverged step
  uint64_t cursor = 0;              // samples consumed over all ranks, including this batch
  // Distinguishes batches of different shapes, e.g. landscape and portrait, whose steps are captured separately. Ranks
  // must agree on it per step only if their collectives depend on it.
  std::string signature{};
};

struct Evaluation {
  std::vector<MetricValue> values{};  // by name, e.g. "top_1_accuracy"
  uint64_t examples = 0;              // over all ranks
  double seconds = 0;

  // Value of this name; throws Error if there is none.
  double value(const std::string& name) const;
};

struct EvaluationRequest {
  uint64_t step = 0;  // of the evaluated parameters
  // Poll before each batch with its number, from 1, on all ranks: true on all of them aborts the evaluation.
  std::function<bool(int64_t batch)> stop{};
  // Call after every `progress_every` batches; `examples`: over all ranks, since the previous call.
  int64_t progress_every = 10;
  std::function<void(int64_t batches, int64_t examples)> progress{};
};

// Base class of tasks. Functions are called on the training thread, on every rank at the same places; exceptions end
// the run. Tensors read by forward() must keep their addresses, since steps on a GPU are captured (see BatchFeed).
class Task {
 public:
  // `micro_steps`: maximum number of batches of one step held at a time, indexed by the micro-step given to load() and
  // forward(). With the default, runs with several micro-steps, e.g. after an elastic resume, are refused: each would
  // use the batch loaded last.
  explicit Task(int micro_steps = 1) : micro_steps_(micro_steps) {}
  virtual ~Task() = default;
  int micro_steps() const { return micro_steps_; }

  // Starts the endless stream of training batches at sample `cursor`, counted over all ranks. Called once, before the
  // first load().
  virtual void open(uint64_t cursor) = 0;
  // Loads the next batch for forward(tape, micro_step). All micro-steps of a step are loaded before the first
  // forward().
  virtual BatchInfo load(int micro_step) = 0;
  // Seconds that load() has waited for data so far.
  virtual double wait_seconds() const { return 0; }
  // Loss on that batch, as Trainer::Forward.
  virtual Loss forward(Tape& tape, int micro_step) = 0;

  // Evaluates the current parameters; evaluate_batches() does so for mean metrics. A result ready on return must be
  // equal on all ranks. It may be asynchronous, at least on the chief, from a thread that scores while training
  // continues and does not use the group. Returns an invalid future if request.stop was true. The default throws Error.
  virtual std::future<Evaluation> evaluate(const EvaluationRequest& request);

  // Fills `identity`, which a checkpoint must match to be continued, and `settings`, recorded with it; changes are
  // announced. The run adds global batch, seed, schedule, ranks, device, threads and all-reduce settings where missing.
  virtual void describe(TrainState& state) const = 0;

 private:
  int micro_steps_;
};

}  // namespace dtrain
