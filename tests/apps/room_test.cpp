// The memory that images of dtrain-serve share.
#include "apps/serve/room.h"

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "libdtrain/core/error.h"
#include "tests/testing.h"

namespace dtrain::serve {
namespace {

bool never() { return false; }
bool at_once() { return true; }

void expect_too_many(const std::function<void()>& action) {
  expect_error(action, Fault::resource, "too many images wait");
}

TEST(Room, GrantsNoMoreThanThereIs) {
  Room room(100);
  Room::Share most = room.take(90, never);
  expect_too_many([&] { room.take(11, at_once); });
  const Room::Share rest = room.take(10, at_once);
  expect_too_many([&] { room.take(1, at_once); });
  most = Room::Share();
  EXPECT_EQ(room.take(90, at_once).bytes(), 90u);
}

TEST(Room, GrantsAnythingWhileNothingIsTaken) {
  Room room(100);
  {
    const Room::Share large = room.take(1000, at_once);
    expect_too_many([&] { room.take(0, at_once); });
  }
  EXPECT_EQ(room.take(100, at_once).bytes(), 100u);
}

TEST(Room, PartsAreGivenBackByThemselves) {
  Room room(100);
  Room::Share all = room.take(100, never);
  Room::Share part = all.part(30);
  EXPECT_EQ(all.bytes(), 70u);
  { const Room::Share gone = all.part(1000); }
  EXPECT_EQ(all.bytes(), 0u);
  expect_too_many([&] { room.take(71, at_once); });
  EXPECT_EQ(room.take(70, at_once).bytes(), 70u);
  const Room::Share moved = std::move(part);
  expect_too_many([&] { room.take(71, at_once); });
}

TEST(Room, WhoNeedsMuchIsNotOvertakenForEver) {
  static std::atomic<bool> waits;
  waits = false;
  Room room(100);
  Room::Share first = room.take(60, never);
  std::atomic<bool> large_is_served = false;
  std::thread large([&] {
    const Room::Share share = room.take(100, [] {
      waits = true;
      return false;
    });
    large_is_served = true;
  });
  while (!waits) std::this_thread::yield();
  expect_too_many([&] { room.take(40, at_once); });  // another is to be served before
  std::thread small([&] {
    const Room::Share share = room.take(40, never);
    EXPECT_TRUE(large_is_served);
  });
  first = Room::Share();
  large.join();
  small.join();
}

TEST(Room, ManyThreadsAtOnceTakeNoMoreThanThereIs) {
  Room room(100);
  std::atomic<int> taken = 0, most = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 16; ++i)
    threads.emplace_back([&] {
      for (int n = 0; n < 20; ++n) {
        const Room::Share share = room.take(48, never);
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
