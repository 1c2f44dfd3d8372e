#include "libdtrain/io/remote/prefetch_queue.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "dtrain/core/error.h"
#include "tests/testing.h"

namespace dtrain::remote {
namespace {

constexpr uint64_t kFile = 1, kOther = 2;

// Fetches that fill their range with a letter, and count.
PrefetchQueue::Fetch letter(char text, std::atomic<int>& fetches) {
  return [text, &fetches](std::span<char> into) {
    std::ranges::fill(into, text);
    ++fetches;
  };
}

// What take() copies; empty if it does not.
std::string taken(PrefetchQueue& reads, uint64_t file, uint64_t offset, size_t size) {
  std::string bytes(size, '?');
  return reads.take(file, offset, bytes) ? bytes : "";
}

void wait_until(const std::function<bool()>& done) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!done() && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_TRUE(done());
}

// Takes a range once it is no longer queued.
std::string taken_when_fetched(PrefetchQueue& reads, std::atomic<int>& fetches, int count, uint64_t offset,
                               size_t size) {
  wait_until([&] { return fetches >= count; });
  return taken(reads, kFile, offset, size);
}

TEST(PrefetchQueue, GiveEachRangeAsOftenAsItWasAdded) {
  PrefetchQueue reads(1000);
  std::atomic<int> fetches = 0;
  reads.add(kFile, 10, 3, letter('a', fetches));
  reads.add(kFile, 10, 3, letter('a', fetches));
  reads.add(kFile, 20, 2, letter('b', fetches));
  EXPECT_EQ(taken_when_fetched(reads, fetches, 2, 10, 3), "aaa");
  EXPECT_EQ(taken(reads, kFile, 10, 2), "");  // another size
  EXPECT_EQ(taken(reads, kOther, 10, 3), "");
  EXPECT_EQ(taken(reads, kFile, 10, 3), "aaa");
  EXPECT_EQ(taken(reads, kFile, 10, 3), "");
  EXPECT_EQ(taken(reads, kFile, 20, 2), "bb");
  EXPECT_EQ(fetches, 2);
}

TEST(PrefetchQueue, ReadersWaitForARangeThatIsBeingFetched) {
  PrefetchQueue reads(1000);
  std::promise<void> began, proceed;
  reads.add(kFile, 0, 1, [&](std::span<char> into) {
    began.set_value();
    proceed.get_future().wait();
    into[0] = 'x';
  });
  began.get_future().wait();
  std::future<std::string> reader = std::async(std::launch::async, [&] { return taken(reads, kFile, 0, 1); });
  EXPECT_EQ(reader.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  proceed.set_value();
  EXPECT_EQ(reader.get(), "x");
}

TEST(PrefetchQueue, LeaveFailuresToTheReader) {
  PrefetchQueue reads(1000);
  std::promise<void> began, proceed;
  reads.add(kFile, 0, 1, [&](std::span<char>) {
    began.set_value();
    proceed.get_future().wait();
    throw Error(Fault::resource, "outage");
  });
  began.get_future().wait();
  std::future<std::string> reader = std::async(std::launch::async, [&] { return taken(reads, kFile, 0, 1); });
  proceed.set_value();
  EXPECT_EQ(reader.get(), "");
  std::atomic<int> fetches = 0;
  reads.add(kFile, 0, 1, letter('c', fetches));
  EXPECT_EQ(taken_when_fetched(reads, fetches, 1, 0, 1), "c");
}

TEST(PrefetchQueue, StayBelowTheLimit) {
  PrefetchQueue reads(100);
  std::atomic<int> fetches = 0;
  reads.add(kFile, 0, 60, letter('a', fetches));
  reads.add(kFile, 0, 60, letter('a', fetches));
  EXPECT_EQ(taken_when_fetched(reads, fetches, 1, 0, 60), std::string(60, 'a'));
  reads.add(kFile, 200, 101, letter('b', fetches));
  reads.add(kFile, 300, 60, letter('c', fetches));
  EXPECT_EQ(taken(reads, kFile, 300, 60), "");
  // An old one makes room.
  for (int i = 0; i < 1024; ++i) reads.add(kFile, 200, 101, letter('b', fetches));
  reads.add(kFile, 400, 60, letter('c', fetches));
  EXPECT_EQ(taken_when_fetched(reads, fetches, 2, 400, 60), std::string(60, 'c'));
  EXPECT_EQ(taken(reads, kFile, 0, 60), "");
  EXPECT_EQ(taken(reads, kFile, 200, 101), "");
  EXPECT_EQ(fetches, 2);
}

TEST(PrefetchQueue, DropWaitsForTheFetchesOfAFile) {
  PrefetchQueue reads(1000);
  std::atomic<int> fetches = 0, others = 0;
  for (uint64_t i = 0; i < 100; ++i) {
    reads.add(kFile, i, 1, letter('a', fetches));
    reads.add(kOther, i, 1, letter('b', others));
  }
  reads.drop(kFile);
  const int before = fetches;
  wait_until([&] { return others == 100; });
  EXPECT_EQ(fetches, before);
  for (uint64_t i = 0; i < 100; ++i) EXPECT_EQ(taken(reads, kFile, i, 1), "");
  EXPECT_EQ(taken(reads, kOther, 99, 1), "b");
}

}  // namespace
}  // namespace dtrain::remote
