// Cadence: after which steps a run shows, saves, evaluates and compares its ranks.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>

namespace dtrain {

// Steps count from 1, warm-up included. 0 stands for never, but where it says otherwise.
struct Cadence {
  uint64_t total_steps = 0;       // the end of the run; what trains needs at least 1
  uint64_t warmup_steps = 0;      // the first steps, which are not shown
  uint64_t show_every = 10;       // at least 1; the first step after the warm-up is shown, too
  uint64_t save_every_steps = 0;  // the end of a run is saved in any case
  double save_every_seconds = 0;  // by the chief's clock, where save_every_steps is 0
  uint64_t verify_every = 0;      // several ranks compare checksums of their parameters; they do so at each save
  uint64_t inspect_every = 0;     // observers look at parameters and gradients: no later step is under way meanwhile
  std::function<bool(uint64_t step)> evaluate_after{};  // training pauses for an evaluation; empty: never

  // `first`: the first step of this run, after what was restored.
  bool shows(uint64_t step, uint64_t first) const {
    if (step <= warmup_steps) return false;
    const uint64_t first_shown = first > warmup_steps ? first : warmup_steps + 1;
    return (step - warmup_steps) % show_every == 0 || step == first_shown;
  }
  // Saves are due 2^times as often: in steps, at most after each, where they are not due by the clock.
  Cadence saving_sooner(int times) const {
    constexpr double kLeastSeconds = 0.001;  // 0 would be never
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
