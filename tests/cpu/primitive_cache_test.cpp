// One entry per key, whoever asks for it.
#include "libdtrain/cpu/onednn/primitive_cache.h"

#include <atomic>
#include <thread>
#include <vector>

#include "tests/testing.h"

namespace dtrain::cpu {
namespace {

struct Made {
  int64_t key;
};

TEST(PrimitiveCache, MakesAnEntryOnceForEachKey) {
  PrimitiveCache cache;
  int made = 0;
  const auto entry = [&](int64_t key) -> Made& {
    return cache.get<Made>(key, [&] {
      ++made;
      return Made{key};
    });
  };
  const Made* const first = &entry(1);
  EXPECT_EQ(entry(2).key, 2);
  EXPECT_EQ(&entry(1), first);
  EXPECT_EQ(made, 2);
}

// Each thread comes by keys that others have made, make at the time, and have not made yet; an entry is made of
// another.
void ask_on_several_threads() {
  constexpr int64_t kKeys = 2000;
  constexpr int kThreads = 4;
  PrimitiveCache cache;
  std::atomic<int> ready = 0, wrong = 0;
  std::vector<std::vector<const Made*>> seen(kThreads);
  std::vector<std::thread> threads;
  for (auto& own : seen)
    threads.emplace_back([&] {
      ++ready;
      while (ready < kThreads) std::this_thread::yield();
      for (int64_t key = 1; key < kKeys; ++key) {
        const Made& made =
            cache.get<Made>(key, [&] { return Made{cache.get<Made>(key - 1, [&] { return Made{key - 1}; }).key + 1}; });
        wrong += made.key != key;
        own.push_back(&made);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  for (const auto& other : seen) EXPECT_EQ(other, seen[0]);
}

TEST(PrimitiveCache, MayBeAskedBySeveralThreads) {
  for (int round = 0; round < 30; ++round) ask_on_several_threads();
}

}  // namespace
}  // namespace dtrain::cpu
