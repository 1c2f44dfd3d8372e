// Learning-rate schedules: pure functions of the step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dtrain {

// The rate of a step, from a decay rule and a linear warm-up in front of it. Steps count from 0; epochs are
// step * global_batch / epoch_samples.
struct Schedule {
  enum class Decay {
    constant,     // base
    piecewise,    // values[i] from boundaries[i - 1] to boundaries[i], in epochs
    exponential,  // base * factor^(epoch / decay_epochs), staircase; not below `floor`
    polynomial,   // (base - floor) * (1 - step / total_steps)^power + floor
    cosine,       // floor + (base - floor) * (1 + cos(pi * step / total_steps)) / 2
  };
  Decay decay = Decay::constant;
  double base = 0.1;
  double warmup_epochs = 0;        // linear from 0 to what the decay gives, as tf_cnn_benchmarks does
  std::vector<double> boundaries;  // epochs
  std::vector<double> values;      // boundaries.size() + 1 rates
  double factor = 1, decay_epochs = 0, floor = 0, power = 2;
  uint64_t total_steps = 0;  // polynomial and cosine
  double steps_per_epoch = 1;

  double at(uint64_t step) const;
  // One line for people: "0.256, linear warm-up over 5 epochs, x0.1 at epochs 30, 60, 80, 90".
  std::string describe() const;

  // tf_cnn_benchmarks' rule for ResNet on ImageNet: base_at_256 * global_batch / 256, five epochs of warm-up, x0.1 at
  // epochs 30, 60, 80 and 90.
  static Schedule resnet(double base_at_256, int64_t global_batch, double steps_per_epoch);
  // "LR0;E1;LR1;...;En;LRn". Throws Error with the offending part.
  static Schedule parse_piecewise(const std::string& text, double steps_per_epoch);
};

}  // namespace dtrain
