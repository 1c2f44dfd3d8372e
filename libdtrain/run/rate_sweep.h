// A learning-rate range test: a short training whose rate grows from step to step, to see where the loss falls fastest.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "libdtrain/run/run.h"

namespace dtrain {

// By L. Smith, "Cyclical learning rates for training neural networks" (arXiv:1506.01186), with the numbers of PyTorch
// Lightning's learning-rate finder.
struct RateSweepOptions {
  double first = 1e-8, last = 1;  // rates of the first step and of the last; those between grow by a constant factor
  uint64_t steps = 100;           // at least 2
  double smoothing = 0.98;        // decay of the moving average of losses, which is corrected for its start
  double stop_factor = 4;         // the sweep ends where that exceeds the least one so many times; 0: it does not
  uint64_t skip_first = 10, skip_last = 1;  // points that are no suggestion, because they say little
};

struct RateSweep {
  struct Point {
    double rate = 0, loss = 0, smoothed = 0;
  };
  std::vector<Point> points{};
  bool diverged = false;  // the sweep ended before its last step
  // The point where the smoothed loss falls fastest by the logarithm of the rate; none where too few have been seen.
  std::optional<size_t> suggestion{};
};

// The smoothed losses and the suggestion, of losses at rates that grow as the options say, up to where the sweep ends.
RateSweep evaluate_sweep(const RateSweepOptions& options, const std::vector<double>& losses);

// Trains `task` with the optimizer of its store. Of `run` the cadence of what is shown, the batch, the chief and the
// faults count: nothing is restored, saved or evaluated. The parameters are changed: whoever goes on with them has kept
// them. A loss that is not finite ends the sweep. Nothing where `stop` asked for an end. Throws Error as Run::train
// does, and for options that make no sweep. Collective, with the same result on all ranks.
std::optional<RateSweep> sweep_learning_rate(Task& task, Optimizer& optimizer, ParameterStore& store,
                                             const TrainerOptions& trainer, Group& group, const RunOptions& run,
                                             const RateSweepOptions& options, std::vector<Observer*> observers = {},
                                             const std::function<bool()>& stop = {});

}  // namespace dtrain
