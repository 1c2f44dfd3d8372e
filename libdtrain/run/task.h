// Task: what a program trains. A run asks it for batches, a forward pass, an evaluation and an identity, and does
// everything else.
#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <string>
#include <vector>

#include "libdtrain/train/checkpoint.h"
#include "libdtrain/train/loss.h"

namespace dtrain {

// What a run has to know about a batch.
struct BatchInfo {
  std::vector<uint64_t> samples{};  // numbers of the records, for the report of a step that diverged
  uint64_t cursor = 0;              // samples consumed over all ranks, once this batch has been trained on
  // Tells apart batches whose shapes differ, e.g. landscape and portrait: their steps are recorded separately. All
  // ranks must agree on that of each step only where their collectives differ by it.
  std::string signature{};
};

struct Evaluation {
  std::vector<MetricValue> values{};  // by name, e.g. "top_1_accuracy"
  uint64_t examples = 0;              // over all ranks
  double seconds = 0;

  // The value of this name; throws Error where there is none.
  double value(const std::string& name) const;
};

struct EvaluationRequest {
  uint64_t step = 0;  // the updates that made the parameters
  // To be asked before each batch, with its number from 1 on, on all ranks: true on all where the evaluation shall be
  // given up.
  std::function<bool(int64_t batch)> stop{};
  // To be called after every `progress_every` batches; `examples` counts those of all ranks since the call before.
  int64_t progress_every = 10;
  std::function<void(int64_t batches, int64_t examples)> progress{};
};

// A program derives its own. All functions are called by the thread that runs the training, on every rank at the same
// places; what they throw ends the run. The tensors that forward() reads must stay where they are from step to step,
// since a GPU's steps are recorded (see BatchFeed).
class Task {
 public:
  // `micro_steps`: how many batches of one step it keeps apart at most, by the micro-step that load() and forward() are
  // given. By default it may ignore that number, and a run of several micro-steps, as one that an elastic resume makes,
  // is refused: each would be trained on the batch that was loaded last.
  explicit Task(int micro_steps = 1) : micro_steps_(micro_steps) {}
  virtual ~Task() = default;
  int micro_steps() const { return micro_steps_; }

  // Begins the endless stream of training batches with sample `cursor`, counted over all ranks. Called once, before the
  // first load().
  virtual void open(uint64_t cursor) = 0;
  // Brings the next batch to where forward(tape, micro_step) reads it. The batches of all micro-steps of a step are
  // loaded before the first forward().
  virtual BatchInfo load(int micro_step) = 0;
  // The seconds that load() has waited for data so far.
  virtual double wait_seconds() const { return 0; }
  // The loss on that batch, as Trainer::Forward.
  virtual Loss forward(Tape& tape, int micro_step) = 0;

  // Evaluates the parameters as they are; evaluate_batches() does it for whatever is a mean of metrics. A result that
  // is there on return must be the same on all ranks. It may come later instead, on the chief at least, from a thread
  // that scores while training goes on; that thread must not touch the group. An invalid future where request.stop said
  // so. The default has nothing to evaluate and throws Error.
  virtual std::future<Evaluation> evaluate(const EvaluationRequest& request);

  // Fills `identity`, what a checkpoint must agree with to be continued, and `settings`, what is recorded along with it
  // and whose change is announced. The run adds the global batch, the seed, the schedule, ranks, device, threads and
  // how sums are made, where they are not there already.
  virtual void describe(TrainState& state) const = 0;

 private:
  int micro_steps_;
};

}  // namespace dtrain
