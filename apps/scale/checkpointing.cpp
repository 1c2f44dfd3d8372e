#include "apps/scale/checkpointing.h"

#include <cmath>

namespace dtrain::scale {

double young_interval(const FailureModel& model, int64_t gpus) {
  return std::sqrt(2 * model.checkpoint * model.mtbf(gpus));
}

double daly_interval(const FailureModel& model, int64_t gpus) {
  const double m = model.mtbf(gpus), x = model.checkpoint / (2 * m);
  return x >= 1 ? m : young_interval(model, gpus) * (1 + std::sqrt(x) / 3 + x / 9) - model.checkpoint;
}

double lost_share(const FailureModel& model, int64_t gpus, double tau) {
  const double m = model.mtbf(gpus);
  return 1 - tau / (m * std::exp(model.restart / m) * std::expm1((tau + model.checkpoint) / m));
}

double best_interval(const FailureModel& model, int64_t gpus) {
  // Searches over log(tau). The optimum is below M, where a failure costs as much as checkpoints could save.
  const auto lost = [&](double log_tau) { return lost_share(model, gpus, std::exp(log_tau)); };
  constexpr double kGolden = 0.6180339887498949;
  double high = std::log(model.mtbf(gpus)), low = high - 30;
  for (int i = 0; i < 80; ++i) {
    const double left = high - kGolden * (high - low), right = low + kGolden * (high - low);
    if (lost(left) < lost(right))
      high = right;
    else
      low = left;
  }
  return std::exp((low + high) / 2);
}

}  // namespace dtrain::scale
