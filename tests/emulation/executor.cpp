#include "tests/emulation/executor.h"

#include <sanitizer/asan_interface.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <vector>

#include "tests/emulation/block.h"
#include "tests/emulation/emulation.h"

// Dynamic shared memory as the engine's kernels declare it; one block uses it at a time.
namespace dtrain::cuda {
alignas(16) extern __shared__ unsigned char block_memory[emulation::kMostSharedBytes];
alignas(16) unsigned char block_memory[emulation::kMostSharedBytes];
}  // namespace dtrain::cuda

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace emulation {
namespace {

using dtrain::cuda::block_memory;

Order order_at_start() {
  const char* name = std::getenv("DTRAIN_EMULATION_ORDER");
  if (name == nullptr || std::strcmp(name, "forward") == 0) return Order::forward;
  if (std::strcmp(name, "reverse") == 0) return Order::reverse;
  if (std::strcmp(name, "random") == 0) return Order::random;
  fail("DTRAIN_EMULATION_ORDER=%s: expected forward, reverse or random", name);
}

Order chosen_order = order_at_start();

// 0 to count - 1 in the configured order; random ones differ between calls but not between runs.
class Turns {
 public:
  explicit Turns(size_t count) : indices_(count) {
    std::iota(indices_.begin(), indices_.end(), size_t{0});
    if (chosen_order == Order::reverse) std::reverse(indices_.begin(), indices_.end());
  }
  const std::vector<size_t>& next() {
    if (chosen_order == Order::random)
      for (size_t i = indices_.size(); i > 1; --i) std::swap(indices_[i - 1], indices_[draw() % i]);
    return indices_;
  }

 private:
  static uint64_t draw() {  // xorshift64 (Marsaglia 2003)
    static uint64_t state = 0x9e3779b97f4a7c15;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state >> 11;
  }

  std::vector<size_t> indices_;
};

uint3 index_in(dim3 extents, size_t linear) {
  const size_t row = linear / extents.x;
  return {static_cast<unsigned>(linear % extents.x), static_cast<unsigned>(row % extents.y),
          static_cast<unsigned>(row / extents.y)};
}

// Shared memory of the running block, with out-of-bounds detection.
class SharedMemory {
 public:
  explicit SharedMemory(size_t bytes) {
    ASAN_POISON_MEMORY_REGION(block_memory, kMostSharedBytes);
    ASAN_UNPOISON_MEMORY_REGION(block_memory, bytes);
  }
  ~SharedMemory() { ASAN_UNPOISON_MEMORY_REGION(block_memory, kMostSharedBytes); }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
};

// Runs the threads of a block until all have ended or wait for other blocks.
void advance(Block& block, Turns& turns) {
  blockIdx = block.index();
  while (!block.done()) {
    bool ran = false;
    for (const size_t thread : turns.next()) ran |= block.step(thread);
    if (ran || block.complete_meetings()) continue;
    if (block.at_grid_barrier()) return;
    block.report_stuck();
  }
}

void run_one_by_one(const Kernel& kernel, const std::vector<size_t>& blocks, Turns& turns) {
  Block block(kernel);
  for (const size_t linear : blocks) {
    std::memset(block_memory, 0xff, kernel.shared_bytes);
    block.begin(index_in(kernel.grid, linear));
    advance(block, turns);
    if (!block.done()) fail("a grid barrier in a kernel whose launch is not cooperative");
  }
}

void run_together(const Kernel& kernel, Turns& block_turns, Turns& turns) {
  const size_t count = count_of(kernel.grid);
  std::vector<Block> blocks(count, Block(kernel));
  std::vector<std::vector<unsigned char>> shared(count, std::vector<unsigned char>(kernel.shared_bytes, 0xff));
  for (size_t i = 0; i < count; ++i) blocks[i].begin(index_in(kernel.grid, i));
  for (size_t done = 0; done < count;) {
    for (const size_t i : block_turns.next()) {
      std::copy(shared[i].begin(), shared[i].end(), block_memory);
      advance(blocks[i], turns);
      std::copy_n(block_memory, kernel.shared_bytes, shared[i].begin());
    }
    done = 0;
    for (const Block& block : blocks) done += block.done() ? 1 : 0;
    if (done != 0 && done != count) fail("%zu of %zu blocks never reach a grid barrier", done, count);
    for (Block& block : blocks) block.leave_grid_barrier();
  }
}

}  // namespace

void set_order(Order order) { chosen_order = order; }
Order order() { return chosen_order; }

void run(const Kernel& kernel) {
  gridDim = kernel.grid;
  blockDim = kernel.block;
  const SharedMemory shared(kernel.shared_bytes);
  Turns threads(count_of(kernel.block)), blocks(count_of(kernel.grid));
  if (kernel.cooperative)
    run_together(kernel, blocks, threads);
  else
    run_one_by_one(kernel, blocks.next(), threads);
}

}  // namespace emulation
