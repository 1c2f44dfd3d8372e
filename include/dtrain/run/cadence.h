// Cadence: intervals at which a run reports, saves, evaluates and compares its ranks.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>

namespace dtrain {

// Steps count from 1, including warm-up. 0 means never unless stated otherwise.
struct Cadence {
  uint64_t total_steps = 0;       // end of the run; at least 1 for training
  uint64_t warmup_steps = 0;      // first steps, not reported
  uint64_t show_every = 10;       // at least 1; the first step after the warm-up is also reported
  uint64_t save_every_steps = 0;  // the end of a run is always saved
  double save_every_seconds = 0;  // by the chief's clock, if save_every_steps is 0
  uint64_t verify_every = 0;      // compares checksums of the ranks' parameters; also done at each save
  uint64_t inspect_every = 0;     // observers read parameters and gradients: no later step is in flight then
  std::function<bool(uint64_t step)> evaluate_after{};  // training pauses for an evaluation; empty: never

  // `first`: first step of this run, after a restore.
  bool shows(uint64_t step, uint64_t first) const {
    if (step <= warmup_steps) return false;
    const uint64_t first_shown = first > warmup_steps ? first : warmup_steps + 1;
    return (step - warmup_steps) % show_every == 0 || step == first_shown;
  }
  // Cadence with saves 2^times as frequent: in steps (at most one per step) unless by the clock.
  Cadence saving_sooner(int times) const {
    constexpr double kLeastSeconds = 0.001;  // 0 would mean never
    Cadence result = *this;
    if (save_every_steps == 0 && save_every_seconds > 0)
      result.save_every_seconds = std::max(kLeastSeconds, std::ldexp(save_every_seconds, -times));
    else
      result.save_every_steps =
          std::max<uint64_t>(1, (save_every_steps > 0 ? save_every_steps : total_steps) >> std::min(times, 63));
    return result;
  }
  bool verifies(uint64_t step) const { return verify_every > 0 && step % verify_every == 0; }
  bool inspects(uint64_t step) const { return inspect_every > 0 && step % inspect_every == 0; }
  bool evaluates(uint64_t step) const { return evaluate_after && evaluate_after(step); }
};

}  // namespace dtrain
