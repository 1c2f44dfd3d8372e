// Schedule of batch norm on a GPU, in training. The engine autotunes it; tests and benchmarks set it.
#pragma once

#include <cstdint>

#include "dtrain/core/context.h"

namespace dtrain {

struct BatchNormSchedule {
  // Results are bitwise equal.
  enum class Kind {
    automatic,
    two_pass,  // one kernel for the statistics; a second one reads the images again and normalises
    resident,  // one cooperative kernel that keeps the images in shared memory between both passes
  };
  Kind kind = Kind::automatic;
  int spare_multiprocessors = 0;     // left free for other work, such as collectives
  int64_t shared_bytes = INT64_MAX;  // limit of shared memory per multiprocessor

  // Fusions of conv_bn_act. Negative: by the plan file, and not fused without an entry in it.
  float sums_worth = -1;         // milliseconds that a batch norm saves if the convolution computes its statistics
  int on_load = -1;              // 1, 0: the next convolution applies the batch norm on load
  int in_dgrad = -1;             // 1, 0: the next convolution's dgrad fuses the reductions of the batch norm's gradient
  bool measure_fusions = false;  // autotune fusions without an entry in the plan file, and add one

  int64_t least_measured = 4 << 20;  // smallest images that are autotuned, bytes
};
// Sets the schedule of all later calls. No effect on a CPU. Synchronised batch norm always runs two_pass.
void set_batch_norm_schedule(Context& context, const BatchNormSchedule& schedule);

namespace cpu {
inline void set_batch_norm_schedule(Context&, const BatchNormSchedule&) {}
}  // namespace cpu

namespace cuda {
decltype(cpu::set_batch_norm_schedule) set_batch_norm_schedule;
}  // namespace cuda

}  // namespace dtrain
