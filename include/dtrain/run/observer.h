// Observer: receives the events of a run. Logs, metrics files and displays are observers.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "dtrain/distributed/communicator.h"
#include "dtrain/run/task.h"
#include "dtrain/train/trainer.h"

namespace dtrain {

// The run was restored or starts afresh; steps follow.
struct Begun {
  uint64_t step = 0;                                          // steps done before this run
  std::string restored_from{};                                // checkpoint, on the chief; empty: fresh start
  bool complete = false;                                      // the checkpoint is already the end of the run
  std::string schedule{};                                     // Schedule::describe
  std::string update{};                                       // update rule, weight decay, loss scale
  std::map<std::string, std::string> identity{}, settings{};  // as recorded in checkpoints, see TrainState
};

// Rank that slows the others down.
struct Straggler {
  int rank = 0;
  double factor = 0;  // multiple of the median over ranks; 0: unknown
};

// A step is done. Steps may be in flight ahead of it; events come in step order.
struct Stepped {
  uint64_t step = 0;   // steps done, including this one
  bool shown = false;  // by Cadence::shows
  double loss = 0;     // mean over the global batch, without the L2 term
  double l2_loss = 0;  // L2 term of weight decay, for shown steps only
  std::vector<MetricValue> metrics{};
  double learning_rate = 0;
  double gradient_norm = 0;
  // Seconds since the previous step was done, or since this one began if none was in flight; steps found done together
  // share the time equally.
  double seconds = 0;
  bool more_under_way = false;         // later steps are in flight
  double wait_seconds = 0;             // for data, since the start of the run
  StepTimes times{};                   // device times
  CommunicatorTimes sums{};            // all-reduce times since the previous step; zero for steps in CUDA graphs
  Straggler slowest{};                 // by the last comparison of ranks
  std::vector<double> rank_seconds{};  // of that comparison: each rank's own part of a step
  double bytes = 0;                    // as in StepReport
  float loss_scale = 1;
  uint64_t skipped = 0;  // updates skipped so far to lower the loss scale
};

// An evaluation is in progress; `batches` is 0 at its start.
struct Evaluating {
  uint64_t step = 0;
  int64_t batches = 0;
  int64_t examples = 0;  // over all ranks, since the previous event
};

struct Evaluated {
  uint64_t step = 0;
  Evaluation result{};
  bool suffices = false;  // RunOptions::enough returned true: training ends
  bool best = false;      // so far, by FollowOptions::metric
  bool stalls = false;    // no improvement for FollowOptions::patience: training ends
  bool resumes = false;   // training continues
};

// A checkpoint is complete on disk. On the chief only.
struct Saved {
  SaveReport report{};
};

// Non-fatal message for the user.
struct Noticed {
  std::string text;
};

enum class Outcome {
  finished,  // all steps done
  enough,    // an evaluation was good enough
  stopped,   // stop requested; progress is saved
};

// The last step of the run is done and saved.
struct Ended {
  Outcome outcome = Outcome::finished;
  uint64_t step = 0;
};

// Base class of observers. Functions are called on the training thread; exceptions end the run.
class Observer {
 public:
  virtual ~Observer() = default;

  virtual void begun(const Begun&) {}
  // Step `step` is about to be enqueued.
  virtual void stepping(uint64_t) {}
  virtual void stepped(const Stepped&) {}
  virtual void evaluating(const Evaluating&) {}
  virtual void evaluated(const Evaluated&) {}
  virtual void saved(const Saved&) {}
  virtual void noticed(const Noticed&) {}
  virtual void ended(const Ended&) {}
};

// Forwards events to several observers in order; none may be null.
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
