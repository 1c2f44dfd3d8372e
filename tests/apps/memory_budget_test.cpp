// Memory budget of images in dtrain-serve.
#include "apps/serve/memory_budget.h"

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "dtrain/core/error.h"
#include "tests/testing.h"

namespace dtrain::serve {
namespace {

bool never() { return false; }
bool at_once() { return true; }

void expect_too_many(const std::function<void()>& action) {
  expect_error(action, Fault::resource, "too many images wait");
}

TEST(MemoryBudget, RefusesReservationsBeyondTheBudget) {
  MemoryBudget budget(100);
  MemoryBudget::Reservation most = budget.reserve(90, never);
  expect_too_many([&] { budget.reserve(11, at_once); });
  const MemoryBudget::Reservation rest = budget.reserve(10, at_once);
  expect_too_many([&] { budget.reserve(1, at_once); });
  most = MemoryBudget::Reservation();
  EXPECT_EQ(budget.reserve(90, at_once).bytes(), 90u);
}

TEST(MemoryBudget, GrantsAnySizeWhileNothingIsReserved) {
  MemoryBudget budget(100);
  {
    const MemoryBudget::Reservation large = budget.reserve(1000, at_once);
    expect_too_many([&] { budget.reserve(0, at_once); });
  }
  EXPECT_EQ(budget.reserve(100, at_once).bytes(), 100u);
}

TEST(MemoryBudget, SplitReservationsAreReleasedSeparately) {
  MemoryBudget budget(100);
  MemoryBudget::Reservation all = budget.reserve(100, never);
  MemoryBudget::Reservation part = all.split(30);
  EXPECT_EQ(all.bytes(), 70u);
  { const MemoryBudget::Reservation gone = all.split(1000); }
  EXPECT_EQ(all.bytes(), 0u);
  expect_too_many([&] { budget.reserve(71, at_once); });
  EXPECT_EQ(budget.reserve(70, at_once).bytes(), 70u);
  const MemoryBudget::Reservation moved = std::move(part);
  expect_too_many([&] { budget.reserve(71, at_once); });
}

TEST(MemoryBudget, LargeRequestsAreNotStarved) {
  static std::atomic<bool> waits;
  waits = false;
  MemoryBudget budget(100);
  MemoryBudget::Reservation first = budget.reserve(60, never);
  std::atomic<bool> large_is_granted = false;
  std::thread large([&] {
    const MemoryBudget::Reservation reservation = budget.reserve(100, [] {
      waits = true;
      return false;
    });
    large_is_granted = true;
  });
  while (!waits) std::this_thread::yield();
  expect_too_many([&] { budget.reserve(40, at_once); });  // an earlier request is waiting
  std::thread small([&] {
    const MemoryBudget::Reservation reservation = budget.reserve(40, never);
    EXPECT_TRUE(large_is_granted);
  });
  first = MemoryBudget::Reservation();
  large.join();
  small.join();
}

TEST(MemoryBudget, ConcurrentReservationsStayWithinTheBudget) {
  MemoryBudget budget(100);
  std::atomic<int> taken = 0, most = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 16; ++i)
    threads.emplace_back([&] {
      for (int n = 0; n < 20; ++n) {
        const MemoryBudget::Reservation reservation = budget.reserve(48, never);
        const int now = taken += 48;
        int before = most;
        while (before < now && !most.compare_exchange_weak(before, now)) continue;
        std::this_thread::yield();
        taken -= 48;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(most, 100);
}

}  // namespace
}  // namespace dtrain::serve
