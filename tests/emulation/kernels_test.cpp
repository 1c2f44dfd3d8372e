// Emulation of kernels: correct ones in every thread order, detection of incorrect ones.
#include <cooperative_groups.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "tests/emulation/launcher.h"
#include "tests/emulation/sanitizer.h"

namespace dtrain {
namespace {

constexpr unsigned kAll = 0xffffffffu;

__device__ int* shared_ints() { return reinterpret_cast<int*>(cuda::block_memory); }
__device__ unsigned thread() { return cooperative_groups::thread_block::thread_rank(); }

__global__ void write_indices(uint3* out) {
  const auto grid = cooperative_groups::this_grid();
  out[2 * grid.thread_rank()] = blockIdx;
  out[2 * grid.thread_rank() + 1] = threadIdx;
}

TEST(Kernels, RunOncePerThreadOfAThreeDimensionalGrid) {
  in_each_order([] {
    DeviceArray<uint3> out(size_t{2} * 2 * 3 * 2 * 4 * 3 * 5);
    ASSERT_EQ(start(write_indices, {dim3(2, 3, 2), dim3(4, 3, 5)}, out.data()), cudaSuccess);
    size_t i = 0;
    const std::vector<uint3> indices = out.values();
    for (unsigned bz = 0; bz < 2; ++bz)
      for (unsigned by = 0; by < 3; ++by)
        for (unsigned bx = 0; bx < 2; ++bx)
          for (unsigned tz = 0; tz < 5; ++tz)
            for (unsigned ty = 0; ty < 3; ++ty)
              for (unsigned tx = 0; tx < 4; ++tx, i += 2) {
                const uint3 block = indices[i], of_thread = indices[i + 1];
                EXPECT_TRUE(block.x == bx && block.y == by && block.z == bz);
                EXPECT_TRUE(of_thread.x == tx && of_thread.y == ty && of_thread.z == tz);
              }
  });
}

// Each thread reads its right neighbour's value.
__global__ void rotate(int* values, bool with_barrier) {
  shared_ints()[threadIdx.x] = values[threadIdx.x];
  if (with_barrier) __syncthreads();
  values[threadIdx.x] = shared_ints()[(threadIdx.x + 1) % blockDim.x];
}

std::vector<int> rotated_by_one(emulation::Order order, bool with_barrier) {
  const emulation::Order before = emulation::order();
  emulation::set_order(order);
  std::vector<int> values(96);
  std::iota(values.begin(), values.end(), 0);
  const DeviceArray<int> on_device(values);
  EXPECT_EQ(start(rotate, {1, 96, 96 * sizeof(int)}, on_device.data(), with_barrier), cudaSuccess);
  emulation::set_order(before);
  return on_device.values();
}

TEST(Kernels, GiveTheSameInEveryOrderWhereTheBarrierIsThere) {
  for (const emulation::Order order : kOrders) {
    const std::vector<int> values = rotated_by_one(order, true);
    for (int i = 0; i < 96; ++i) EXPECT_EQ(values[static_cast<size_t>(i)], (i + 1) % 96);
  }
}

TEST(Kernels, DifferBetweenOrdersWhereABarrierIsMissing) {
  std::set<std::vector<int>> results;
  for (const emulation::Order order : kOrders) results.insert(rotated_by_one(order, false));
  EXPECT_EQ(results.size(), 3u);
}

__global__ void read_shared(int* out) { out[threadIdx.x] = shared_ints()[threadIdx.x]; }

TEST(Kernels, FindNoUsableValueInFreshMemory) {
  const DeviceArray<int> out(64);
  EXPECT_EQ(out.values(), std::vector<int>(64, -1));
  ASSERT_EQ(start(rotate, {1, 64, 64 * sizeof(int)}, DeviceArray<int>(std::vector<int>(64, 7)).data(), true),
            cudaSuccess);
  ASSERT_EQ(start(read_shared, {1, 64, 64 * sizeof(int)}, out.data()), cudaSuccess);
  EXPECT_EQ(out.values(), std::vector<int>(64, -1));
}

__global__ void shuffles(int* out) {
  const int lane = static_cast<int>(threadIdx.x) % warpSize;
  int* mine = out + threadIdx.x * 10;
  mine[0] = __shfl_sync(kAll, lane, 5);
  mine[1] = __shfl_sync(kAll, lane, 5, 8);
  mine[2] = __shfl_up_sync(kAll, lane, 3, 16);
  mine[3] = __shfl_down_sync(kAll, lane, 3, 16);
  mine[4] = __shfl_xor_sync(kAll, lane, 17);
  mine[5] = static_cast<int>(__ballot_sync(kAll, lane % 3 == 0));
  mine[6] = __any_sync(kAll, lane == 31) * 10 + __any_sync(kAll, 0);
  mine[7] = __all_sync(kAll, lane < 32) * 10 + __all_sync(kAll, lane < 31);
  mine[8] = static_cast<int>(__shfl_xor_sync(kAll, 0x100000000ll * lane, 1) >> 32);
  mine[9] = static_cast<int>(4 * __shfl_down_sync(kAll, 0.25 * lane, 1));
}

TEST(Kernels, ShuffleAndVoteAsAWarpDoes) {
  in_each_order([] {
    const DeviceArray<int> out(64 * 10);
    ASSERT_EQ(start(shuffles, {1, 64}, out.data()), cudaSuccess);
    const std::vector<int> values = out.values();
    for (int thread = 0; thread < 64; ++thread) {
      const int lane = thread % 32, in_sixteen = lane % 16;
      const std::vector<int> expected = {5,
                                         lane / 8 * 8 + 5,
                                         in_sixteen < 3 ? lane : lane - 3,
                                         in_sixteen > 12 ? lane : lane + 3,
                                         lane ^ 17,
                                         0x49249249,
                                         10,
                                         10,
                                         lane ^ 1,
                                         lane == 31 ? 31 : lane + 1};
      EXPECT_EQ(std::vector<int>(values.begin() + thread * 10, values.begin() + thread * 10 + 10), expected);
    }
  });
}

// Half-warps synchronise independently; exited lanes are not waited for.
__global__ void partial_masks(int* out) {
  const unsigned lane = threadIdx.x;
  const unsigned half = lane < 16 ? 0x0000ffffu : 0xffff0000u;
  int sum = 1;
  for (unsigned round = 0; round < (lane < 16 ? 4u : 2u); ++round) sum += __shfl_xor_sync(half, sum, 1 << round);
  out[lane] = sum;
  if (lane == 7) return;
  out[lane] += 100 * __shfl_sync(kAll, static_cast<int>(lane), 7);
}

TEST(Kernels, MeetByTheirMasksAndGetNothingFromALaneThatEnded) {
  in_each_order([] {
    const DeviceArray<int> out(32);
    ASSERT_EQ(start(partial_masks, {1, 32}, out.data()), cudaSuccess);
    const std::vector<int> values = out.values();
    for (size_t lane = 0; lane < 32; ++lane)
      EXPECT_EQ(values[lane], (lane < 16 ? 16 : 4) - (lane == 7 ? 0 : 100)) << lane;
  });
}

__global__ void block_votes(int* out) {
  const int mine = static_cast<int>(thread());
  out[mine * 3] = __syncthreads_count(mine % 2);
  out[mine * 3 + 1] = __syncthreads_or(mine == 40);
  if (mine == 0) return;  // exited: not waited for
  out[mine * 3 + 2] = __syncthreads_and(mine > 0);
}

TEST(Kernels, VoteAtBarriers) {
  in_each_order([] {
    const DeviceArray<int> out(48 * 3);
    ASSERT_EQ(start(block_votes, {1, dim3(8, 6)}, out.data()), cudaSuccess);
    const std::vector<int> values = out.values();
    for (size_t i = 0; i < 48; ++i) {
      EXPECT_EQ(values[i * 3], 24);
      EXPECT_EQ(values[i * 3 + 1], 1);
      EXPECT_EQ(values[i * 3 + 2], i == 0 ? -1 : 1);
    }
  });
}

// Every block sums all blocks' values after a grid barrier, through global and shared memory.
__global__ void sum_of_all_blocks(int* slots, int* sums) {
  const auto grid = cooperative_groups::this_grid();
  int* shared = shared_ints();
  shared[threadIdx.x] = static_cast<int>(100 * blockIdx.x + threadIdx.x);
  slots[grid.thread_rank()] = shared[threadIdx.x];
  grid.sync();
  int sum = shared[(threadIdx.x + 1) % blockDim.x];
  for (unsigned i = 0; i < grid.num_threads(); ++i) sum += slots[i];
  grid.sync();
  sums[grid.thread_rank()] = sum;
}

TEST(Kernels, WaitForTheWholeGridWhereTheLaunchIsCooperative) {
  in_each_order([] {
    const DeviceArray<int> slots(6 * 32), sums(6 * 32);
    ASSERT_EQ(start(sum_of_all_blocks, {6, 32, 32 * sizeof(int), true}, slots.data(), sums.data()), cudaSuccess);
    const std::vector<int> values = sums.values();
    const int all = 100 * 15 * 32 + 6 * 31 * 16;
    for (int i = 0; i < 6 * 32; ++i)
      EXPECT_EQ(values[static_cast<size_t>(i)], all + 100 * (i / 32) + (i % 32 + 1) % 32) << i;
  });
}

// The last block to arrive sums the others' partial results.
__global__ void last_block_sums(int* partial, unsigned* arrived, int* total) {
  partial[blockIdx.x] = static_cast<int>(blockIdx.x);
  __threadfence();
  if (atomicInc(arrived, gridDim.x - 1) != gridDim.x - 1) return;
  int sum = 0;
  for (unsigned i = 0; i < gridDim.x; ++i) sum += partial[i];
  *total = sum;
}

TEST(Kernels, TellTheLastBlockByACounter) {
  in_each_order([] {
    const DeviceArray<int> partial(50), total(1);
    const DeviceArray<unsigned> arrived(std::vector<unsigned>{0});
    ASSERT_EQ(start(last_block_sums, {50, 1}, partial.data(), arrived.data(), total.data()), cudaSuccess);
    EXPECT_EQ(total.values()[0], 49 * 25);
    EXPECT_EQ(arrived.values()[0], 0u);
  });
}

__global__ void divergent_barrier() {
  if (threadIdx.x < 40)
    __syncthreads();
  else
    __syncthreads();
}
__global__ void divergent_warp() {
  if (threadIdx.x != 3) __shfl_xor_sync(kAll, 1, 1);
  __syncthreads();
}
__global__ void foreign_mask() { __syncwarp(0xfffffffe); }
__global__ void grid_barrier() { cooperative_groups::this_grid().sync(); }
__global__ void deserted_grid_barrier() {
  if (blockIdx.x > 0) cooperative_groups::this_grid().sync();
}
__global__ void misaligned(const float4* p, float4* out) { *out = __ldg(p); }

TEST(KernelsDeathTest, EndWhereThreadsWaitForEachOther) {
  EXPECT_DEATH(start(divergent_barrier, {1, 64}),
               "block .0, 0, 0. .*different places:\n *40 threads wait at __syncthreads in .*kernels_test.*, the first "
               "is 0\n *24 threads wait at __syncthreads in .*kernels_test.*, the first is 40");
  EXPECT_DEATH(start(divergent_warp, {2, 32}),
               "31 threads wait at __shfl_xor_sync of mask ffffffff in (.|\n)*"
               "1 threads wait at __syncthreads in .*the first is 3");
  EXPECT_DEATH(start(foreign_mask, {1, 32}), "lane 0 is not in the mask fffffffe of its own __syncwarp");
  EXPECT_DEATH(start(grid_barrier, {2, 32}), "a grid barrier in a kernel whose launch is not cooperative");
  EXPECT_DEATH(start(deserted_grid_barrier, {3, 32, 0, true}), "1 of 3 blocks never reach a grid barrier");
  EXPECT_DEATH(__syncthreads(), "__syncthreads outside of a kernel");
  const DeviceArray<float4> values(2);
  EXPECT_DEATH(start(misaligned, {1, 1}, reinterpret_cast<const float4*>(reinterpret_cast<float*>(values.data()) + 1),
                     values.data()),
               "misaligned");
}

__global__ void store(int* p) { *p = 1; }

TEST(KernelsDeathTest, FaultBeforeAndAfterTheirMemory) {
  const DeviceArray<int> values(5);
  EXPECT_DEATH(start(store, {1, 1}, values.data() + 64), "");
  EXPECT_DEATH(start(store, {1, 1}, values.data() - 1024), "");
}

#ifdef EMULATION_ASAN
__global__ void store_shared(int index) { shared_ints()[index] = 1; }

TEST(KernelsDeathTest, EndWhereTheyLeaveTheirMemory) {
  const DeviceArray<int> values(5);
  EXPECT_DEATH(start(store, {1, 1}, values.data() + 5), "use-after-poison");
  EXPECT_DEATH(start(store_shared, {1, 1, 64}, 16), "use-after-poison");
  EXPECT_EQ(start(store_shared, {1, 1, 64}, 15), cudaSuccess);
}
#endif

__global__ void many_barriers(float* out) {
  float* shared = reinterpret_cast<float*>(cuda::block_memory);
  float x = static_cast<float>(threadIdx.x);
  for (int i = 0; i < 10; ++i) {
    shared[threadIdx.x] = x;
    __syncthreads();
    x += shared[blockDim.x - 1 - threadIdx.x];
    __syncthreads();
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = x;
}

TEST(Kernels, KeepFloatsAcrossBarriers) {
  in_each_order([] {
    const DeviceArray<float> out(64 * 256);
    ASSERT_EQ(start(many_barriers, {64, 256, 256 * sizeof(float)}, out.data()), cudaSuccess);
    for (const float x : out.values()) EXPECT_EQ(x, 255 * 512);
  });
}

}  // namespace
}  // namespace dtrain
