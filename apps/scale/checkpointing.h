// Optimal checkpoint interval under GPU failures.
#pragma once

#include <cstdint>

namespace dtrain::scale {

// All times in seconds. GPU failures are independent, with exponentially distributed times; any failure ends the job.
struct FailureModel {
  double gpu_mtbf = 50000 * 3600.0;  // mean time between failures of one GPU; Llama 3: 419 in 54 days of 16,384
  double checkpoint = 5;             // stall of training while one is written
  double restart = 300;              // until training resumes, detection included

  double mtbf(int64_t gpus) const { return gpu_mtbf / static_cast<double>(gpus); }
};

// tau: training time between two checkpoints; C: checkpoint; R: restart; M: the job's mean time between failures.

// Young (1974): tau = sqrt(2 C M).
double young_interval(const FailureModel& model, int64_t gpus);
// Daly (2006): sqrt(2 C M) (1 + sqrt(C / 2M) / 3 + C / 2M / 9) - C for C < 2 M, else M.
double daly_interval(const FailureModel& model, int64_t gpus);

// Fraction of time lost, by Daly's complete model: training for T takes
// T / tau * M e^(R / M) (e^((tau + C) / M) - 1), so that 1 - tau / (M e^(R / M) (e^((tau + C) / M) - 1)) is lost: to
// checkpoints, to work done twice, and to restarts, which may fail too.
double lost_share(const FailureModel& model, int64_t gpus, double tau);

// The tau that minimises lost_share, by golden-section search.
double best_interval(const FailureModel& model, int64_t gpus);

}  // namespace dtrain::scale
