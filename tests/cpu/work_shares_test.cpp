// Shares of work against what they have to be: all of it, once, and taken by whoever is free.
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "libdtrain/cpu/parallel.h"
#include "tests/testing.h"

namespace dtrain::cpu {
namespace {

TEST(WorkShares, TileTheWork) {
  for (const int64_t threads : {1, 2, 3, 8})
    for (const int64_t count : {0, 1, 5, 64, 1000, 1001})
      for (const int64_t least : {1, 7, 100}) {
        const WorkShares shares(threads, count, least);
        SCOPED_TRACE(testing::Message() << threads << " threads, " << count << " of at least " << least);
        EXPECT_LE(shares.count(), WorkShares::most(threads));
        int64_t end = 0;
        for (int64_t share = 0; share < shares.count(); ++share) {
          EXPECT_EQ(shares.begin(share), end);
          end = shares.end(share);
          if (share % shares.of_part() > 0) {
            EXPECT_GE(end - shares.begin(share), least) << share;
          }
        }
        EXPECT_EQ(end, count);
      }
}

TEST(WorkShares, EachIsTakenOnce) {
  for (const int64_t threads : {1, 2, 3}) {
    const WorkShares shares(threads, 1000, 1);
    std::vector<std::atomic<int>> taken(static_cast<size_t>(shares.count()));
    parallel_shares(shares, [&](int64_t thread, int64_t share, int64_t begin, int64_t end) {
      ++taken[static_cast<size_t>(share)];
      EXPECT_LT(thread, threads);
      EXPECT_EQ(begin, shares.begin(share));
      EXPECT_EQ(end, shares.end(share));
    });
    for (const auto& times : taken) EXPECT_EQ(times, 1);
  }
}

TEST(WorkShares, OfASlowThreadAreTakenByTheOthers) {
  using std::chrono::steady_clock;
  const WorkShares shares(2, 64, 1);
  std::atomic<int> short_ones{0};
  bool others_came = false;
  parallel_shares(shares, [&](int64_t, int64_t share, int64_t, int64_t) {
    if (share != 0) {
      if (share < shares.of_part()) ++short_ones;
      return;
    }
    const auto late = steady_clock::now() + std::chrono::seconds(30);
    const auto all_taken = [&] { return short_ones == shares.of_part() - 1; };
    while (!all_taken() && steady_clock::now() < late) std::this_thread::yield();
    others_came = all_taken();
  });
  EXPECT_TRUE(others_came) << short_ones << " of " << shares.of_part() - 1 << " short shares were taken";
}

}  // namespace
}  // namespace dtrain::cpu
