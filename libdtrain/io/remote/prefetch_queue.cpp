#include "libdtrain/io/remote/prefetch_queue.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <system_error>

namespace dtrain::remote {
namespace {

// Threads mostly wait for answers: they set the number of requests in flight.
constexpr size_t kPrefetchThreads = 32;
// A range that was not taken by then was prefetched for a reader that was destroyed.
constexpr uint64_t kLaterRequests = 1024;

}  // namespace

PrefetchQueue::~PrefetchQueue() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  added_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void PrefetchQueue::add(uint64_t file, uint64_t offset, size_t size, Fetch fetch) {
  const Key key{file, offset};
  const std::lock_guard lock(mutex_);
  ++requests_;
  if (const auto found = ranges_.find(key); found != ranges_.end()) {
    ++found->second.readers;
    return;
  }
  if (!make_room(size)) return;
  if (idle_ <= queue_.size() && threads_.size() < kPrefetchThreads && !start_thread() && threads_.empty()) return;
  ranges_.emplace(key, Range{.size = size, .request = requests_, .fetch = std::move(fetch)});
  bytes_ += size;
  queue_.push_back(key);
  added_.notify_one();
}

bool PrefetchQueue::make_room(size_t size) {
  while (bytes_ + size > most_bytes_ && !ready_.empty()) {
    const auto oldest = ranges_.find(ready_.front());
    if (requests_ - oldest->second.request < kLaterRequests) break;
    erase(oldest);
  }
  return bytes_ + size <= most_bytes_;
}

bool PrefetchQueue::start_thread() try {
  threads_.emplace_back([this] { work(); });
  return true;
} catch (const std::system_error&) {  // no more threads: readers fetch themselves
  return false;
}

PrefetchQueue::Ranges::iterator PrefetchQueue::erase(Ranges::iterator range) {
  if (range->second.state == State::ready) ready_.erase(range->second.place);
  bytes_ -= range->second.size;
  return ranges_.erase(range);
}

bool PrefetchQueue::take(uint64_t file, uint64_t offset, std::span<char> into) {
  const Key key{file, offset};
  std::unique_lock lock(mutex_);
  auto range = ranges_.find(key);
  if (range == ranges_.end() || range->second.size != into.size()) return false;
  if (range->second.state == State::queued) {
    erase(range);
    return false;
  }
  finished_.wait(lock, [&] {
    range = ranges_.find(key);
    return range == ranges_.end() || range->second.state != State::fetching;
  });
  if (range == ranges_.end() || range->second.state != State::ready || range->second.size != into.size()) return false;
  if (--range->second.readers > 0) {
    std::ranges::copy(range->second.bytes, into.begin());
    return true;
  }
  const std::vector<char> bytes = std::move(range->second.bytes);
  erase(range);
  lock.unlock();
  std::ranges::copy(bytes, into.begin());
  return true;
}

void PrefetchQueue::drop(uint64_t file) {
  const auto of_file = [&](const Key& key) { return key.first == file; };
  std::unique_lock lock(mutex_);
  std::erase_if(queue_, of_file);
  for (;;) {
    bool fetching = false;
    for (auto range = ranges_.lower_bound({file, 0}); range != ranges_.end() && of_file(range->first);) {
      const bool busy = range->second.state == State::fetching;
      fetching |= busy;
      range = busy ? std::next(range) : erase(range);
    }
    if (!fetching) return;
    finished_.wait(lock);
  }
}

void PrefetchQueue::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_;
    added_.wait(lock, [&] { return ending_ || !queue_.empty(); });
    --idle_;
    if (ending_) return;
    const Key key = queue_.front();
    queue_.pop_front();
    const auto range = ranges_.find(key);
    if (range != ranges_.end() && range->second.state == State::queued) fetch(key, lock);
  }
}

void PrefetchQueue::fetch(const Key& key, std::unique_lock<std::mutex>& lock) {
  Range& range = ranges_.at(key);  // nobody else removes it while it is being fetched
  range.state = State::fetching;
  bool fetched = true;
  lock.unlock();
  try {
    range.bytes.resize(range.size);
    range.fetch(range.bytes);
  } catch (const std::exception&) {  // the reader meets the same failure if it lasts
    fetched = false;
  }
  lock.lock();
  if (fetched) {
    range.state = State::ready;
    range.place = ready_.insert(ready_.end(), key);
  } else {
    range.state = State::queued;
    erase(ranges_.find(key));
  }
  finished_.notify_all();
}

}  // namespace dtrain::remote
