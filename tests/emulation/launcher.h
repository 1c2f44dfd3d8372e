// Helpers of emulation tests: device arrays, and launches on the legacy stream.
#pragma once

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/emulation/emulation.h"

namespace dtrain {

namespace cuda {
extern __shared__ __align__(16) unsigned char block_memory[];
}

template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(size_t count) : count_(count) { EXPECT_EQ(cudaMalloc(&data_, count * sizeof(T)), cudaSuccess); }
  explicit DeviceArray(const std::vector<T>& values) : DeviceArray(values.size()) {
    EXPECT_EQ(cudaMemcpy(data_, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice), cudaSuccess);
  }
  ~DeviceArray() { EXPECT_EQ(cudaFree(data_), cudaSuccess); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* data() const { return data_; }
  std::vector<T> values() const {
    std::vector<T> values(count_);
    EXPECT_EQ(cudaMemcpy(values.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost), cudaSuccess);
    return values;
  }

 private:
  size_t count_;
  T* data_ = nullptr;
};

struct Shape3 {
  dim3 grid, block;
  size_t shared_bytes = 0;
  bool cooperative = false;
  cudaStream_t stream = nullptr;
};

template <class... Parameters, class... Arguments>
cudaError_t start(void (*kernel)(Parameters...), const Shape3& shape, Arguments... arguments) {
  cudaLaunchAttribute cooperative{};
  cooperative.id = cudaLaunchAttributeCooperative;
  cooperative.val.cooperative = 1;
  const cudaLaunchConfig_t config{shape.grid,   shape.block,  shape.shared_bytes,
                                  shape.stream, &cooperative, shape.cooperative ? 1u : 0u};
  return cudaLaunchKernelEx(&config, kernel, arguments...);
}

constexpr emulation::Order kOrders[] = {emulation::Order::forward, emulation::Order::reverse, emulation::Order::random};

// Runs `action` in each thread order.
template <class Action>
void in_each_order(Action&& action) {
  const emulation::Order before = emulation::order();
  for (const emulation::Order order : kOrders) {
    emulation::set_order(order);
    action();
  }
  emulation::set_order(before);
}

}  // namespace dtrain
