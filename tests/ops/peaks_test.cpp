#include "dtrain/ops/peaks.h"

#include <cmath>

#include "tests/testing.h"

namespace dtrain {
namespace {

TEST(Peaks, AreMeasuredInMemoryThatIsGivenBack) {
  for (const auto& context : devices()) {
    const size_t before = context->memory_stats().reserved;
    for (const double peak : {measure_peak_flops(*context, DType::f32, 0), measure_peak_bandwidth(*context, 0)}) {
      EXPECT_GT(peak, 0);
      EXPECT_TRUE(std::isfinite(peak));
    }
    EXPECT_LE(context->memory_stats().reserved, before);
  }
}

}  // namespace
}  // namespace dtrain
