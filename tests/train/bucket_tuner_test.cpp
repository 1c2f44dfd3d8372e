// Bucket sizes are tried in turn, and all ranks choose the same.
#include "libdtrain/train/bucket_tuner.h"

#include <set>

#include "tests/distributed/thread_communicator.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

constexpr int64_t kMebibyte = 1 << 20;

// Bucket size of each step if every step takes a second.
std::vector<int64_t> tried(int64_t first, int64_t bytes) {
  std::vector<int64_t> sizes;
  for (BucketTuner tuner({.bytes = first, .last_bytes = 5}, bytes); !tuner.done(); tuner.add(1)) {
    sizes.push_back(tuner.next().bytes);
    EXPECT_EQ(tuner.next().last_bytes, 5);
  }
  return sizes;
}

TEST(BucketTuner, TriesWhatDiffersForSoManyGradients) {
  const auto steps = [](const std::vector<int64_t>& mebibytes) {
    std::vector<int64_t> sizes;
    for (const int64_t size : mebibytes) sizes.insert(sizes.end(), BucketTuner::kSteps, size * kMebibyte);
    return sizes;
  };
  EXPECT_EQ(tried(25 * kMebibyte, 100 * kMebibyte), steps({25, 1, 4, 10, 64, 256}));
  EXPECT_EQ(tried(2 * kMebibyte, 6 * kMebibyte), steps({2, 1, 4, 10}));
  EXPECT_EQ(tried(25 * kMebibyte, kMebibyte / 2), steps({25}));
}

// On rank 0 steps with 4 MiB are the fastest, on rank 1 those with 10 MiB; 1 MiB is never slow.
TEST(BucketTuner, TakesWhatTheSlowestRankIsFastestWith) {
  on_ranks(
      2, [] { return make_cpu_context({.threads = 1}); },
      [](Context&, ThreadCommunicator& communicator) {
        BucketTuner tuner({.bytes = 25 * kMebibyte}, 30 * kMebibyte);
        for (size_t step = 0; !tuner.done(); ++step) {
          const int64_t size = tuner.next().bytes / kMebibyte;
          const int64_t fastest = communicator.rank() == 0 ? 4 : 10;
          // The first step per candidate is warm-up; of the others the better counts.
          const double disturbed = step % BucketTuner::kSteps == 0 ? 100 : step % BucketTuner::kSteps == 1 ? 5 : 0;
          tuner.add((size == 1 ? 2 : size == fastest ? 1 : 3) + (size == 1 && disturbed == 5 ? 0 : disturbed));
        }
        EXPECT_EQ(tuner.choose(communicator.group()).bytes, kMebibyte);
      });
}

TEST(BucketTuner, DoesNotChooseBeforeItHasTried) {
  BucketTuner tuner({}, 100 * kMebibyte);
  tuner.add(1);
  expect_error([&] { tuner.choose(*make_single_group()); }, Fault::config, "before all sizes were timed");
}

}  // namespace
}  // namespace dtrain
