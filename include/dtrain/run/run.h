// Run: a training from start or checkpoint to its end, on one or many ranks, on CPU or GPU.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dtrain/distributed/group.h"
#include "dtrain/run/cadence.h"
#include "dtrain/run/observer.h"
#include "dtrain/run/task.h"
#include "dtrain/train/checkpoint.h"
#include "dtrain/train/trainer.h"

namespace dtrain {

class Faults;  // fault injection of tests

// Start of the run.
enum class Resume {
  newest,  // newest complete checkpoint of train_dir, if any
  never,   // fresh start; a train_dir with a checkpoint is refused
};

// Direction of improvement of a metric.
enum class Better : uint8_t { unset, higher, lower };

// Metric that selects the best checkpoint and stops training.
struct FollowOptions {
  std::string metric{};           // a name in Evaluation::values; empty: none
  Better better = Better::unset;  // required with a metric: e.g. higher for accuracy, lower for error
  bool keep_best = false;         // keep the checkpoint of the best evaluation in addition to the newest
  uint64_t patience = 0;          // stop after this many evaluations in a row without improvement; 0: never
  double min_delta = 0;           // smallest change that counts as an improvement for `patience`
};

struct RunOptions {
  Cadence cadence{};        // total_steps is required
  int64_t batch = 0;        // required: samples per rank and micro-step, for the checkpoint's global batch
  int chief = 0;            // rank that reads and writes checkpoints
  std::string train_dir{};  // empty: no checkpoints
  // One rank per host writes checkpoints (the chief on its own), for hosts without a shared file system: train_dir is
  // local to each. A run resumes from the newest step that all of them have.
  bool local_checkpoints = false;
  int64_t keep = 5;                 // number of newest checkpoints to keep, at least 2
  double checkpoint_timeout = 600;  // seconds until a save must be on disk, else the job ends
  // Copies each checkpoint of the chief to other storage, see CheckpointOptions::publish.
  std::function<void(const CommittedCheckpoint&)> publish{};
  Resume resume = Resume::newest;
  std::string resume_from{};  // checkpoint directory, overrides `resume`
  bool tune_buckets = false;  // tune the gradient bucket size in the first steps, starting from the trainer's
  // Whether an evaluation is good enough to end training. Called on all ranks with equal values.
  std::function<bool(const Evaluation&)> enough{};
  // Selection of the best evaluation and early stopping. A resumed run includes earlier evaluations, and first makes up
  // for one that was interrupted.
  FollowOptions follow{};
  // Advice appended to the error of a first step that runs out of GPU memory.
  std::function<std::string()> advice_on_memory{};
  Faults* faults = nullptr;  // for tests
};

// Restores the newest checkpoint or broadcasts the chief's initial parameters, enqueues steps ahead of the device,
// reports, saves, evaluates, compares the ranks' parameters and speeds, stops all ranks after the same step on request,
// and ends crash loops. Reads no environment and prints nothing; ends the process only through GroupOptions::fail, if a
// peer fails.
class Run {
 public:
  // Arguments must outlive the run and be equal on all ranks. With several ranks the trainer needs a communicator.
  // `stop`, optional, is polled: true requests a stop of all ranks after a checkpoint. Throws Error(Fault::config) for
  // inconsistent arguments.
  Run(Task& task, Trainer& trainer, Group& group, RunOptions options, std::vector<Observer*> observers = {},
      std::function<bool()> stop = {});
  ~Run();
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  // Trains to the end; collective, once. Throws Error(Fault::numeric) for a non-finite loss or gradient or diverged
  // replicas, Error(Fault::checkpoint) for another run's checkpoint, and exceptions of the task.
  Outcome train();
  // Evaluates the current parameters, at any time except during train(); nullopt if a stop was requested. Waits for
  // asynchronous results. Collective.
  std::optional<Evaluation> evaluate();

  // Steps done so far, including those before the checkpoint.
  uint64_t step() const;

 private:
  class Training;
  std::unique_ptr<Training> training_;
};

}  // namespace dtrain
