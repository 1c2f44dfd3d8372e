#include "dtrain/ops/peaks.h"

#include <algorithm>
#include <chrono>

#include "dtrain/core/dispatch.h"
#include "dtrain/ops/matmul.h"
#include "dtrain/ops/pointwise.h"
#include "libdtrain/cpu/kernels/table.h"
#include "libdtrain/cpu/threads/work_stealing.h"
#include "libdtrain/ops/pointwise_kernels.h"

namespace dtrain {
namespace {

// Minimum time of repeated calls of `work` within about `seconds`, after a warm-up call in which libraries select
// kernels and memory is touched.
template <class Work>
double least_seconds(const Work& work, double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto elapsed = [](Clock::time_point since) {
    return std::max(1e-9, std::chrono::duration<double>(Clock::now() - since).count());
  };
  work();
  double least = 0;
  for (const Clock::time_point began = Clock::now(); least == 0 || elapsed(began) < seconds;) {
    const Clock::time_point before = Clock::now();
    work();
    const double taken = elapsed(before);
    least = least == 0 ? taken : std::min(least, taken);
  }
  return least;
}

double peak_of_cpu(const Context& context, DType dtype, double seconds) {
  constexpr int64_t kRounds = 200'000;  // about a millisecond
  const cpu::Kernels& kernels = context.kernels();
  const bool pairs = dtype == DType::bf16 && kernels.capabilities.bf16;
  const auto loop = pairs ? kernels.peak.multiply_add_pairs : kernels.peak.multiply_add;
  double operations = 0;  // of each thread
  const auto multiply_add = [&] {
    cpu::parallel_parts(context, context.threads(), [&](int part, int64_t, int64_t) {
      float sink = 0;
      const double done = loop(kRounds, &sink);
      if (part == 0) operations = done;
    });
  };
  const double least = least_seconds(multiply_add, seconds);
  return context.threads() * operations / least;
}

double peak_of_products(Context& context, DType dtype, double seconds) {
  constexpr int64_t kSize = 4096;
  double least = 0;
  {
    const Tensor x = context.zeros({kSize, kSize}, dtype), w = context.zeros({kSize, kSize}, dtype);
    const auto multiply = [&] {
      Tape tape(context, Mode::eval);
      linear(tape, tape.constant(x), tape.constant(w));
      context.synchronize("the measurement of the peak");
    };
    least = least_seconds(multiply, seconds);
  }
  context.trim();
  return 2.0 * kSize * kSize * kSize / least;
}

}  // namespace

double measure_peak_flops(Context& context, DType dtype, double seconds) {
  return context.is_cpu() ? peak_of_cpu(context, dtype, seconds) : peak_of_products(context, dtype, seconds);
}

double measure_peak_bandwidth(Context& context, double seconds) {
  constexpr int64_t kSize = int64_t{1} << 25;
  double least = 0;
  {
    const Tensor a = context.empty({kSize}), b = context.zeros({kSize}), c = context.zeros({kSize});
    const auto sum = [&] {
      DT_DISPATCH(context, add)(b, c, a);
      context.synchronize("the measurement of the memory");
    };
    least = least_seconds(sum, seconds);
  }
  context.trim();
  return 3.0 * sizeof(float) * kSize / least;
}

}  // namespace dtrain
