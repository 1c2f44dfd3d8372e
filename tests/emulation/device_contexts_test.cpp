// CUDA contexts of a process on a host with several GPUs.
#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "dtrain/core/context.h"
#include "libdtrain/cuda/device_memory.h"
#include "tests/emulation/emulation.h"

namespace dtrain {
namespace {

// Such a context takes half a gigabyte on the first GPU, for each process of the host.
TEST(DeviceContexts, ThreadsThatGrowAPoolMakeNoneOnTheFirstGpu) {
  emulation::set_device_count(2);
  for (const auto make : {cuda::make_pinned_memory, cuda::make_device_memory}) {
    const std::unique_ptr<Allocator> memory = make(1);
    emulation::new_device_contexts();
    void* block = nullptr;
    std::thread([&] { block = memory->allocate(1000); }).join();
    EXPECT_EQ(emulation::new_device_contexts(), std::set<int>{1});
    std::thread([&] { memory->release(block, 1000); }).join();
    EXPECT_EQ(emulation::new_device_contexts(), std::set<int>{1});
  }
  emulation::set_device_count(1);
}

}  // namespace
}  // namespace dtrain
