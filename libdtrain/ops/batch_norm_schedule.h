// How a GPU goes about the batch norms of a training step. The engine measures and chooses; tests and benchmarks choose
// for it.
#pragma once

#include <cstdint>

#include "libdtrain/core/context.h"

namespace dtrain {

struct BatchNormSchedule {
  // Both schedules give the same bits.
  enum class Kind {
    automatic,
    two_pass,  // one launch reads the images and adds up, another one reads them again and writes the result
    resident,  // one launch of blocks that wait for each other and keep in shared memory what they have read
  };
  Kind kind = Kind::automatic;
  int spare_multiprocessors = 0;     // left to other work, such as collectives
  int64_t shared_bytes = INT64_MAX;  // the most of a multiprocessor's memory that may be taken

  // What conv_bn_act leaves to its convolutions; negative: as the plan file says, and nothing where it says nothing.
  float sums_worth = -1;  // milliseconds that a batch norm saves where the convolution makes the sums of its output
  int on_load = -1;       // 1, 0: whether the next convolution applies the batch norm as it reads
  int in_dgrad = -1;      // 1, 0: whether the next convolution's data gradient begins the batch norm's gradient
  bool measure_fusions = false;  // what the plan file does not say of those is measured, and kept in it

  int64_t least_measured = 4 << 20;  // bytes of images: less takes microseconds, whatever the choice
};
// For all calls from now on. A CPU has one schedule only; synchronised statistics take two_pass.
void set_batch_norm_schedule(Context& context, const BatchNormSchedule& schedule);

namespace cpu {
inline void set_batch_norm_schedule(Context&, const BatchNormSchedule&) {}
}  // namespace cpu

namespace cuda {
decltype(cpu::set_batch_norm_schedule) set_batch_norm_schedule;
}  // namespace cuda

}  // namespace dtrain
