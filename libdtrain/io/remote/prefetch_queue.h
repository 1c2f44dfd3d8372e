// PrefetchQueue: ranges of remote files that threads fetch into memory before they are read.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <span>
#include <thread>
#include <utility>
#include <vector>

namespace dtrain::remote {

// Thread-safe. Ranges that find no room are not fetched, and failures are left to the reader.
class PrefetchQueue {
 public:
  using Fetch = std::function<void(std::span<char>)>;

  // `most_bytes`: of all ranges that are queued, fetched or held.
  explicit PrefetchQueue(size_t most_bytes) : most_bytes_(most_bytes) {}
  // Waits for running fetches.
  ~PrefetchQueue();
  PrefetchQueue(const PrefetchQueue&) = delete;
  PrefetchQueue& operator=(const PrefetchQueue&) = delete;

  // Queues a range. It is held until it was taken as often as it was added; one that nobody takes for long, until
  // others need its room.
  void add(uint64_t file, uint64_t offset, size_t size, Fetch fetch);
  // Copies a prefetched range of this size, and waits while it is fetched. False: the caller has to fetch it.
  bool take(uint64_t file, uint64_t offset, std::span<char> into);
  // Removes the ranges of a file, and waits for those that are being fetched.
  void drop(uint64_t file);

 private:
  using Key = std::pair<uint64_t, uint64_t>;  // file and offset
  enum class State : uint8_t { queued, fetching, ready };
  struct Range {
    size_t size = 0;
    uint64_t request = 0;
    Fetch fetch;
    int readers = 1;
    State state = State::queued;
    std::vector<char> bytes{};
    std::list<Key>::iterator place{};  // in ready_
  };
  using Ranges = std::map<Key, Range>;

  bool make_room(size_t size);
  bool start_thread();
  Ranges::iterator erase(Ranges::iterator range);
  void work();
  void fetch(const Key& key, std::unique_lock<std::mutex>& lock);

  const size_t most_bytes_;
  std::mutex mutex_;
  std::condition_variable added_, finished_;
  Ranges ranges_;
  std::deque<Key> queue_;  // also of ranges that were removed since
  std::list<Key> ready_;   // the oldest first
  size_t bytes_ = 0, idle_ = 0;
  uint64_t requests_ = 0;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace dtrain::remote
