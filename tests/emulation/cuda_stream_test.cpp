// Custom work on a context's stream.
#include "dtrain/core/cuda_stream.h"

#include <cuda_runtime.h>

#include "tests/testing.h"

namespace dtrain {
namespace {

TEST(CudaStream, WhatIsQueuedThereIsInOrderAndRecorded) {
  const auto context = make_cuda_context();
  const Tensor x = context->empty({8}, DType::i32), y = context->empty({8}, DType::i32);
  context->fill_zero(x);
  context->fill_zero(y);
  const auto graph = context->capture([&] {
    ASSERT_EQ(cudaMemsetAsync(x.raw(), 1, x.bytes(), cuda_stream(*context)), cudaSuccess);
    context->copy(x, y);
  });
  EXPECT_EQ(values_of<int32_t>(*context, y), std::vector<int32_t>(8, 0));
  context->launch(*graph);
  EXPECT_EQ(values_of<int32_t>(*context, y), std::vector<int32_t>(8, 0x01010101));
}

}  // namespace
}  // namespace dtrain
