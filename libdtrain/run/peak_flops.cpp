#include "libdtrain/run/peak_flops.h"

#include <algorithm>
#include <chrono>

#include "libdtrain/ops/matmul.h"

namespace dtrain {

double measure_peak_flops(Context& context, double seconds) {
  using Clock = std::chrono::steady_clock;
  constexpr int64_t kSize = 768;  // three matrices of it are in the caches of most processors
  constexpr double kOperations = 2.0 * kSize * kSize * kSize;
  const Tensor x = context.zeros({kSize, kSize}), w = context.zeros({kSize, kSize});
  const auto elapsed = [](Clock::time_point since) {
    return std::chrono::duration<double>(Clock::now() - since).count();
  };
  const auto multiply = [&] {
    Tape tape(context, Mode::eval);
    linear(tape, tape.constant(x), tape.constant(w));
    context.synchronize("the measurement of the peak");
  };
  multiply();  // libraries choose their kernels
  double least = 0;
  for (const Clock::time_point began = Clock::now(); least == 0 || elapsed(began) < seconds;) {
    const Clock::time_point before = Clock::now();
    multiply();
    const double taken = elapsed(before);
    least = least == 0 ? taken : std::min(least, taken);
  }
  return least > 0 ? kOperations / least : 0;
}

}  // namespace dtrain
