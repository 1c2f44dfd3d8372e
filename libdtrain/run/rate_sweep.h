// Learning-rate range test: a short training with exponentially growing rate, to find where the loss falls fastest.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "dtrain/run/run.h"

namespace dtrain {

// L. Smith, "Cyclical learning rates for training neural networks" (arXiv:1506.01186), with the defaults of PyTorch
// Lightning's learning-rate finder.
struct RateSweepOptions {
  double first = 1e-8, last = 1;            // rates of the first and last step, interpolated geometrically
  uint64_t steps = 100;                     // at least 2
  double smoothing = 0.98;                  // decay of the exponential moving average of losses, with bias correction
  double stop_factor = 4;                   // stops once the average exceeds its minimum by this factor; 0: never
  uint64_t skip_first = 10, skip_last = 1;  // points excluded from the suggestion
};

struct RateSweep {
  struct Point {
    double rate = 0, loss = 0, smoothed = 0;
  };
  std::vector<Point> points{};
  bool diverged = false;  // stopped before the last step
  // Point of steepest descent of the smoothed loss over the logarithm of the rate; nullopt with too few points.
  std::optional<size_t> suggestion{};
};

// Smoothed losses and suggestion from losses at the options' rates, up to where the sweep stops.
RateSweep evaluate_sweep(const RateSweepOptions& options, const std::vector<double>& losses);

// Trains `task` with the store's optimizer. Uses cadence of reports, batch, chief and faults of `run`; does not
// restore, save or evaluate. Changes the parameters: save them before if needed. A non-finite loss ends the sweep.
// Returns nullopt if `stop` was true. Throws Error as Run::train does, and for invalid options. Collective, with equal
// results on all ranks.
std::optional<RateSweep> sweep_learning_rate(Task& task, Optimizer& optimizer, ParameterStore& store,
                                             const TrainerOptions& trainer, Group& group, const RunOptions& run,
                                             const RateSweepOptions& options, std::vector<Observer*> observers = {},
                                             const std::function<bool()>& stop = {});

}  // namespace dtrain
