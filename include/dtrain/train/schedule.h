// Learning-rate schedules: pure functions of the step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dtrain {

// Linear warm-up from `warmup_start` to `base`, then a decay rule. Steps count from 0. Times in epochs are converted to
// steps, floor(epochs * steps_per_epoch), and take effect from that step on.
struct Schedule {
  enum class Decay {
    constant,     // base
    piecewise,    // base; values[i] from boundaries[i] on
    exponential,  // base * factor^(decay_epochs done, an integer if `staircase`), at least `floor`
    polynomial,   // floor + (base - floor) * (1 - t)^power; t runs from 0 at the end of the warm-up to 1 at total_steps
    cosine,       // floor + (base - floor) * (1 + cos(pi t)) / 2; t as above
    // TensorFlow 1's rules; n: steps after the warm-up, t as above.
    polynomial_cycle,  // polynomial with t = n / (k d), d: the steps of decay_epochs; k = ceil(n / d), at least 1
    cosine_restarts,   // floor + (base - floor) * m_mul^i * (1 + cos(pi u)) / 2: u runs from 0 to 1 in period i = 0, 1
                       // ...; the first takes decay_epochs, each later one t_mul times as long as that before it
    linear_cosine,     // base * ((alpha + 1 - t) * (1 + cos(2 pi periods t)) / 2 + beta)
  };
  Decay decay = Decay::constant;
  double base = 0.1;
  double warmup_epochs = 0;
  double warmup_start = 0;           // rate of step 0, with a warm-up
  std::vector<double> boundaries{};  // epochs, increasing
  std::vector<double> values{};      // one per boundary
  double factor = 1, decay_epochs = 1;
  bool staircase = true;
  double floor = 0;
  double power = 2;
  double t_mul = 2, m_mul = 1;
  double periods = 0.5, alpha = 0, beta = 0.001;
  uint64_t total_steps = 0;  // of the run: for polynomial, cosine and linear_cosine
  double steps_per_epoch = 1;

  double at(uint64_t step) const;
  // One-line description: "0.256, linear warm-up over 5 epochs, x0.1 at epochs 30, 60, 80, 90"; in steps if an epoch is
  // one step.
  std::string describe() const;
  // Throws Error for inconsistent fields.
  void validate() const;

  // The rate becomes values[i] at boundaries[i].
  static Schedule piecewise(double base, std::vector<double> boundaries, std::vector<double> values,
                            double steps_per_epoch);
  // Parses lists "E1,...,En" and "LR0,LR1,...,LRn"; without epochs, LRi is the rate of epoch i. Throws Error with the
  // offending part.
  static Schedule parse_lists(const std::string& epochs, const std::string& rates, double steps_per_epoch);
  // Parses "LR0;E1;LR1;...;En;LRn", the format of tf_cnn_benchmarks' --piecewise_learning_rate_schedule. Throws Error
  // with the offending part.
  static Schedule parse_piecewise(const std::string& text, double steps_per_epoch);
};

}  // namespace dtrain
