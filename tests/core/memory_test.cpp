// Caching allocator: reuse, splitting, coalescing, limit, threads.
#include "dtrain/core/memory.h"

#include <cstring>
#include <thread>

#include "dtrain/core/rng.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

bool aligned(const void* block) { return reinterpret_cast<uintptr_t>(block) % kAlignment == 0; }

TEST(HostAllocator, MapsAndUnmaps) {
  HostAllocator host;
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{5000}, 3 * kMiB + 1}) {
    void* block = host.allocate(bytes);
    EXPECT_TRUE(aligned(block));
    std::memset(block, 1, bytes);
    EXPECT_GE(host.stats().reserved, bytes);
    host.release(block, bytes);
    EXPECT_EQ(host.stats().reserved, 0u);
  }
  EXPECT_EQ(host.stats().system_calls, 4u);
  expect_error([&] { host.allocate(size_t{1} << 60); }, Fault::resource, "out of host memory");
}

TEST(CachingAllocator, HandsOutAgainWhatWasReleased) {
  CachingAllocator pool(std::make_unique<HostAllocator>());
  void* first = pool.allocate(1000);
  EXPECT_TRUE(aligned(first));
  pool.release(first, 1000);
  EXPECT_EQ(pool.allocate(900), first);
  pool.release(first, 900);
  EXPECT_EQ(pool.stats().system_calls, 1u);
  EXPECT_EQ(pool.stats().in_use, 0u);
  EXPECT_EQ(pool.stats().peak_in_use, 1024u);
}

TEST(CachingAllocator, BestFit) {
  CachingAllocator pool(std::make_unique<HostAllocator>());
  void* wide = pool.allocate(8 * kMiB);
  void* wall = pool.allocate(256);
  void* narrow = pool.allocate(2 * kMiB);
  void* second_wall = pool.allocate(256);
  pool.release(wide, 8 * kMiB);
  pool.release(narrow, 2 * kMiB);
  EXPECT_EQ(pool.allocate(kMiB), narrow);
  EXPECT_EQ(pool.allocate(3 * kMiB), wide);
  EXPECT_NE(wall, second_wall);
}

TEST(CachingAllocator, MergesNeighboursInAnyOrderOfRelease) {
  const size_t third = 10 * kMiB;  // nearly a third of a segment of 32 MiB
  const std::vector<std::vector<size_t>> orders{{0, 1, 2}, {2, 1, 0}, {0, 2, 1}, {1, 0, 2}};
  for (const auto& order : orders) {
    CachingAllocator pool(std::make_unique<HostAllocator>());
    std::vector<void*> blocks;
    for (int i = 0; i < 3; ++i) blocks.push_back(pool.allocate(third));
    for (size_t i : order) pool.release(blocks[i], third);
    EXPECT_EQ(pool.allocate(3 * third), blocks[0]);
    EXPECT_EQ(pool.stats().system_calls, 1u);
  }
}

TEST(CachingAllocator, Cap) {
  CachingAllocator pool(std::make_unique<HostAllocator>(), 40 * kMiB);
  pool.allocate(30 * kMiB);
  expect_error([&] { pool.allocate(20 * kMiB); }, Fault::resource, "20 MiB requested, 30 MiB in use of a limit of 40");
  EXPECT_EQ(pool.stats().in_use, 30 * kMiB);
  EXPECT_LE(pool.stats().reserved, 40 * kMiB);
}

TEST(CachingAllocator, TrimGivesBackWhatHoldsNothing) {
  CachingAllocator pool(std::make_unique<HostAllocator>());
  void* first = pool.allocate(50 * kMiB);
  void* second = pool.allocate(40 * kMiB);
  void* small = pool.allocate(kMiB);
  pool.release(first, 50 * kMiB);
  pool.release(pool.allocate(2 * kMiB), 2 * kMiB);  // from the segment shared with `small`
  pool.trim();
  EXPECT_EQ(pool.stats().reserved, (40 + 32) * kMiB);
  pool.release(second, 40 * kMiB);
  pool.release(small, kMiB);
  pool.trim();
  EXPECT_EQ(pool.stats().reserved, 0u);
  EXPECT_EQ(pool.stats().in_use, 0u);
  pool.release(pool.allocate(kMiB), kMiB);
}

// Two free blocks that cannot be coalesced would fail a request within the limit.
TEST(CachingAllocator, GivesBackBeforeItFails) {
  for (const auto spare : {CachingAllocator::Spare::give_back, CachingAllocator::Spare::keep}) {
    CachingAllocator pool(std::make_unique<HostAllocator>(), 100 * kMiB, spare);
    void* left = pool.allocate(40 * kMiB);
    pool.release(pool.allocate(50 * kMiB), 50 * kMiB);
    pool.release(left, 40 * kMiB);
    if (spare == CachingAllocator::Spare::give_back) {
      EXPECT_NE(pool.allocate(90 * kMiB), nullptr);
    } else {
      expect_error([&] { pool.allocate(90 * kMiB); }, Fault::resource,
                   "90 MiB requested, 0 MiB in use of a limit of 100 MiB, 90 MiB free in pieces");
    }
  }
}

TEST(CachingAllocator, HoldsNothingWhereItHasNoSpare) {
  CachingAllocator pool(std::make_unique<HostAllocator>(), 4 * kMiB, CachingAllocator::Spare::none);
  for (int round = 0; round < 3; ++round) {
    void* first = pool.allocate(1000);
    void* second = pool.allocate(0);
    EXPECT_EQ(pool.stats().in_use, 1001u);
    EXPECT_EQ(pool.stats().reserved, 1001u);
    pool.release(first, 1000);
    EXPECT_EQ(pool.stats().reserved, 1u);
    pool.release(second, 0);
    EXPECT_EQ(pool.stats().reserved, 0u);
  }
  EXPECT_EQ(pool.stats().system_calls, 6u);
  expect_error([&] { pool.allocate(4 * kMiB + 1); }, Fault::resource, "out of memory");
}

TEST(CachingAllocator, NamesTheLargestBlocksWhereItFails) {
  CachingAllocator pool(std::make_unique<HostAllocator>(), 100 * kMiB);
  for (size_t mib : {10, 20, 20, 1, 2, 3}) pool.allocate(mib * kMiB);
  expect_error([&] { pool.allocate(80 * kMiB); }, Fault::resource,
               "the largest in use: 2 x 20 MiB, 1 x 10 MiB, 1 x 3 MiB, 1 x 2 MiB; use a smaller batch");
}

TEST(CachingAllocator, BlocksNeverOverlapUnderThreads) {
  CachingAllocator pool(std::make_unique<HostAllocator>());
  auto work = [&pool](uint64_t id) {
    RandomStream random(5, id);
    std::vector<std::pair<unsigned char*, size_t>> held;
    for (int i = 0; i < 2000; ++i) {
      if (held.size() < 20 && random.below(2)) {
        const size_t bytes = 1 + random.below(20000);
        auto* block = static_cast<unsigned char*>(pool.allocate(bytes));
        std::memset(block, static_cast<int>(id), bytes);
        held.emplace_back(block, bytes);
      } else if (!held.empty()) {
        const auto [block, bytes] = held.back();
        held.pop_back();
        for (size_t b = 0; b < bytes; b += 97) ASSERT_EQ(block[b], id);
        pool.release(block, bytes);
      }
    }
    for (auto [block, bytes] : held) pool.release(block, bytes);
  };
  std::vector<std::thread> threads;
  for (uint64_t id = 0; id < 4; ++id) threads.emplace_back(work, id);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pool.stats().in_use, 0u);
  EXPECT_EQ(pool.stats().system_calls, 1u);
}

}  // namespace
}  // namespace dtrain
