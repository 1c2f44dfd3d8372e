// Run: a training from start or checkpoint to its end, on one rank or many, on a CPU or a GPU.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "libdtrain/distributed/group.h"
#include "libdtrain/run/cadence.h"
#include "libdtrain/run/evaluation_record.h"
#include "libdtrain/run/faults.h"
#include "libdtrain/run/observer.h"
#include "libdtrain/run/task.h"
#include "libdtrain/train/trainer.h"

namespace dtrain {

// What the run goes on from.
enum class Resume {
  newest,  // the newest complete checkpoint of train_dir, where there is one
  never,   // nothing: a train_dir that holds a checkpoint is refused
};

struct RunOptions {
  Cadence cadence{};        // total_steps is to be given
  int64_t batch = 0;        // to be given: samples of a rank and micro-step, for the global batch of the checkpoint
  int chief = 0;            // the rank that reads and writes checkpoints
  std::string train_dir{};  // empty: nothing is saved or restored
  // Checkpoints are written by one rank of each host, the chief on its own, for hosts that have no file system in
  // common: train_dir is a folder of each. A run goes on from the newest step of which all of them have a checkpoint.
  bool local_checkpoints = false;
  int64_t keep = 5;                 // the newest checkpoints stay; 2 at least
  double checkpoint_timeout = 600;  // seconds that a save may take to be on the disk before the job ends
  Resume resume = Resume::newest;
  std::string resume_from{};  // the folder of a checkpoint, in place of `resume`
  bool tune_buckets = false;  // try sizes of gradient buckets in the first steps, from the trainer's on
  // True where an evaluation is good enough to end the training. Asked on all ranks with the same values.
  std::function<bool(const Evaluation&)> enough{};
  // Which evaluation is the best, and whether they still improve. A run that goes on from a checkpoint goes by the
  // evaluations of before, too, and first makes up for one that is due there and was cut off.
  FollowOptions follow{};
  // What to add to the error of a first step that runs out of a GPU's memory.
  std::function<std::string()> advice_on_memory{};
  Faults* faults = nullptr;  // for tests
};

// Restores the newest checkpoint or shares the chief's initial parameters, queues steps ahead of the device, shows,
// saves, evaluates, compares the ranks' parameters and speeds, stops all ranks after the same step on request, and ends
// jobs that fail again and again after one checkpoint. It reads no environment and prints nothing; the process is ended
// only where a peer rank fails, by GroupOptions::fail.
class Run {
 public:
  // All arguments outlive the run; all ranks construct it alike. The trainer has a communicator where the group has
  // several ranks. `stop`, if given, is polled: true asks all ranks to stop after a checkpoint. Throws Error(Fault::
  // config) where the arguments do not fit each other.
  Run(Task& task, Trainer& trainer, Group& group, RunOptions options, std::vector<Observer*> observers = {},
      std::function<bool()> stop = {});
  ~Run();
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  // Trains to the end; collective, once. Throws Error(Fault::numeric) for a loss or a gradient that is not finite, or
  // for ranks whose parameters differ; Error(Fault::checkpoint) for a checkpoint of another run; what the task throws.
  Outcome train();
  // Evaluates the parameters as they are, at any time but during train(); nothing where a stop was requested. Waits for
  // a result that comes later. Collective.
  std::optional<Evaluation> evaluate();

  // Steps made so far, those of the checkpoint included.
  uint64_t step() const;

 private:
  class Training;
  std::unique_ptr<Training> training_;
};

}  // namespace dtrain
