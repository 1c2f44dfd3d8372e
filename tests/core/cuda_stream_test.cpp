// Stream for custom ops.
#include "dtrain/core/cuda_stream.h"

#include "tests/testing.h"

namespace dtrain {
namespace {

TEST(CudaStream, IsAGpusAlone) {
  for (const auto& context : devices()) {
    if (context->is_cpu())
      expect_error([&] { cuda_stream(*context); }, Fault::config, "asked of cpu:0, expected the context of a GPU");
    else
      EXPECT_NE(cuda_stream(*context), nullptr);
  }
}

}  // namespace
}  // namespace dtrain
