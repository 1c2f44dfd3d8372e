// Observer: hears what happens in a run. Logs, metrics files and displays are observers.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "libdtrain/distributed/communicator.h"
#include "libdtrain/run/stragglers.h"
#include "libdtrain/run/task.h"
#include "libdtrain/train/trainer.h"

namespace dtrain {

// The run has been restored, or starts afresh, and steps are about to be made.
struct Begun {
  uint64_t step = 0;            // made before this run
  std::string restored_from{};  // the checkpoint, on the chief; empty for a fresh start
  bool complete = false;        // the checkpoint is the end of the run already: no step follows
  std::string schedule{};       // Schedule::describe
  std::string update{};         // what an update does: the rule, decay, loss scale
  std::map<std::string, std::string> identity{}, settings{};  // what checkpoints record of the run, as TrainState
};

// A step is done. Steps may be queued ahead of the device; events come in the order of the steps.
struct Stepped {
  uint64_t step = 0;   // steps done, this one included
  bool shown = false;  // by Cadence::shows
  double loss = 0;     // mean over the global batch, without the L2 term
  double l2_loss = 0;  // the L2 term of weight decay, for shown steps only
  std::vector<MetricValue> metrics{};
  double learning_rate = 0;
  double gradient_norm = 0;
  // Seconds since the step before was done or, where nothing was under way, since this one began; steps that are found
  // done together share theirs equally.
  double seconds = 0;
  bool more_under_way = false;         // later steps have been queued already
  double wait_seconds = 0;             // for data, since the run began
  StepTimes times{};                   // by the clock of the device
  CommunicatorTimes sums{};            // over the ranks, since the step before; zero for steps that are replayed
  Straggler slowest{};                 // by what ranks last reported
  std::vector<double> rank_seconds{};  // which that was: of each rank, for its own part of a step
  double bytes = 0;                    // as in StepReport
  float loss_scale = 1;
  uint64_t skipped = 0;  // updates left out so far to lower the loss scale
};

// An evaluation is under way: `batches` 0 where it begins.
struct Evaluating {
  uint64_t step = 0;
  int64_t batches = 0;
  int64_t examples = 0;  // over all ranks, since the event before
};

struct Evaluated {
  uint64_t step = 0;
  Evaluation result{};
  bool suffices = false;  // RunOptions::enough said so: training ends
  bool best = false;      // so far, by FollowOptions::metric
  bool stalls = false;    // none has improved for FollowOptions::patience: training ends
  bool resumes = false;   // training goes on
};

// A checkpoint is complete on the disk. The chief alone hears it.
struct Saved {
  SaveReport report{};
};

// A line for people about something that does not end the run.
struct Noticed {
  std::string text;
};

enum class Outcome {
  finished,  // all steps are done
  enough,    // an evaluation was good enough
  stopped,   // a request to stop; what was done is saved
};

// The last step of the run is done and saved.
struct Ended {
  Outcome outcome = Outcome::finished;
  uint64_t step = 0;
};

// Derived by whoever wants to hear. All functions are called by the thread that runs the training. What they throw ends
// the run.
class Observer {
 public:
  virtual ~Observer() = default;

  virtual void begun(const Begun&) {}
  // Step `step` is about to be queued.
  virtual void stepping(uint64_t) {}
  virtual void stepped(const Stepped&) {}
  virtual void evaluating(const Evaluating&) {}
  virtual void evaluated(const Evaluated&) {}
  virtual void saved(const Saved&) {}
  virtual void noticed(const Noticed&) {}
  virtual void ended(const Ended&) {}
};

// Several as one, in their order; none of them null.
class Observers final : public Observer {
 public:
  explicit Observers(std::vector<Observer*> all = {}) : all_(std::move(all)) {}
  void begun(const Begun& event) override { each(&Observer::begun, event); }
  void stepping(uint64_t step) override { each(&Observer::stepping, step); }
  void stepped(const Stepped& event) override { each(&Observer::stepped, event); }
  void evaluating(const Evaluating& event) override { each(&Observer::evaluating, event); }
  void evaluated(const Evaluated& event) override { each(&Observer::evaluated, event); }
  void saved(const Saved& event) override { each(&Observer::saved, event); }
  void noticed(const Noticed& event) override { each(&Observer::noticed, event); }
  void ended(const Ended& event) override { each(&Observer::ended, event); }

 private:
  template <class Hear, class Payload>
  void each(Hear hear, const Payload& event) {
    for (Observer* observer : all_) (observer->*hear)(event);
  }
  std::vector<Observer*> all_;
};

}  // namespace dtrain
