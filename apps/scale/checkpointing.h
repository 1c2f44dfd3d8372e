// How often to write checkpoints where GPUs fail.
#pragma once

#include <cstdint>

namespace dtrain::scale {

// All times in seconds. Failures of a GPU are independent and come after exponentially distributed times, and any one
// ends the job.
struct FailureModel {
  double gpu_mtbf = 50000 * 3600.0;  // mean time between failures of one GPU; Llama 3: 419 in 54 days of 16,384
  double checkpoint = 5;             // training stands still while one is written
  double restart = 300;              // until training goes on, detection included

  double mtbf(int64_t gpus) const { return gpu_mtbf / static_cast<double>(gpus); }
};

// Below, tau is the time of training between two checkpoints, C one checkpoint, R a restart, M the job's mean time
// between failures.

// Young (1974): tau = sqrt(2 C M).
double young_interval(const FailureModel& model, int64_t gpus);
// Daly (2006): sqrt(2 C M) (1 + sqrt(C / 2M) / 3 + C / 2M / 9) - C for C < 2 M, else M.
double daly_interval(const FailureModel& model, int64_t gpus);

// The share of the time that is not training, Daly's complete model: training for T takes
// T / tau * M e^(R / M) (e^((tau + C) / M) - 1), so that 1 - tau / (M e^(R / M) (e^((tau + C) / M) - 1)) is lost: to
// checkpoints, to work done twice, and to restarts, which may fail too.
double lost_share(const FailureModel& model, int64_t gpus, double tau);

// The tau at which lost_share is least, found by golden sections.
double best_interval(const FailureModel& model, int64_t gpus);

}  // namespace dtrain::scale
