#include "libdtrain/io/remote/look_ahead.h"

#include <algorithm>
#include <exception>
#include <system_error>
#include <utility>

namespace dtrain::remote {
namespace {

constexpr size_t kAheadThreads = 4, kAheadJobs = 64;

}  // namespace

LookAhead::~LookAhead() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    jobs_.clear();
  }
  added_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void LookAhead::add(const void* owner, std::function<void()> job) {
  const std::lock_guard lock(mutex_);
  if (ending_ || jobs_.size() >= kAheadJobs) return;
  jobs_.push_back({owner, std::move(job)});
  if (idle_ < jobs_.size() && threads_.size() < kAheadThreads) try {
      threads_.emplace_back([this] { work(); });
    } catch (const std::system_error&) {  // no more threads: the reader fetches its blocks itself
      if (threads_.empty()) jobs_.clear();
    }
  added_.notify_one();
}

void LookAhead::cancel(const void* owner) {
  std::unique_lock lock(mutex_);
  std::erase_if(jobs_, [&](const Job& job) { return job.owner == owner; });
  done_.wait(lock, [&] { return !running_.contains(owner); });
}

void LookAhead::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_;
    added_.wait(lock, [&] { return ending_ || !jobs_.empty(); });
    --idle_;
    if (ending_) return;
    const Job job = std::move(jobs_.front());
    jobs_.pop_front();
    ++running_[job.owner];
    lock.unlock();
    try {
      job.run();
    } catch (const std::exception&) {  // the reader meets the same failure if it lasts
    }
    lock.lock();
    if (--running_[job.owner] == 0) running_.erase(job.owner);
    done_.notify_all();
  }
}

}  // namespace dtrain::remote
