// Shares of work against what they have to be: all of it, once, and taken by whoever is free.
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "libdtrain/cpu/threads/work_stealing.h"
#include "tests/testing.h"

namespace dtrain::cpu {
namespace {

TEST(ChunkedRange, TileTheWork) {
  for (const int64_t threads : {1, 2, 3, 8})
    for (const int64_t count : {0, 1, 5, 64, 1000, 1001})
      for (const int64_t least : {1, 7, 100}) {
        const ChunkedRange chunks(threads, count, least);
        SCOPED_TRACE(testing::Message() << threads << " threads, " << count << " of at least " << least);
        EXPECT_LE(chunks.count(), ChunkedRange::max_count(threads));
        int64_t end = 0;
        for (int64_t chunk = 0; chunk < chunks.count(); ++chunk) {
          EXPECT_EQ(chunks.begin(chunk), end);
          end = chunks.end(chunk);
          if (chunk % chunks.per_thread() > 0) {
            EXPECT_GE(end - chunks.begin(chunk), least) << chunk;
          }
        }
        EXPECT_EQ(end, count);
      }
}

TEST(ChunkedRange, EachIsTakenOnce) {
  for (const int64_t threads : {1, 2, 3}) {
    const ChunkedRange chunks(threads, 1000, 1);
    std::vector<std::atomic<int>> taken(static_cast<size_t>(chunks.count()));
    parallel_chunks(chunks, [&](int64_t thread, int64_t chunk, int64_t begin, int64_t end) {
      ++taken[static_cast<size_t>(chunk)];
      EXPECT_LT(thread, threads);
      EXPECT_EQ(begin, chunks.begin(chunk));
      EXPECT_EQ(end, chunks.end(chunk));
    });
    for (const auto& times : taken) EXPECT_EQ(times, 1);
  }
}

TEST(ChunkedRange, OfASlowThreadAreTakenByTheOthers) {
  using std::chrono::steady_clock;
  const ChunkedRange chunks(2, 64, 1);
  std::atomic<int> short_chunks{0};
  bool others_came = false;
  parallel_chunks(chunks, [&](int64_t, int64_t chunk, int64_t, int64_t) {
    if (chunk != 0) {
      if (chunk < chunks.per_thread()) ++short_chunks;
      return;
    }
    const auto late = steady_clock::now() + std::chrono::seconds(30);
    const auto all_taken = [&] { return short_chunks == chunks.per_thread() - 1; };
    while (!all_taken() && steady_clock::now() < late) std::this_thread::yield();
    others_came = all_taken();
  });
  EXPECT_TRUE(others_came) << short_chunks << " of " << chunks.per_thread() - 1 << " short chunks were taken";
}

}  // namespace
}  // namespace dtrain::cpu
