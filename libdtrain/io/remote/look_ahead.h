// LookAhead: threads that read blocks into the disk cache before they are needed.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

namespace dtrain::remote {

// Thread-safe. Jobs are hints: those that find no room in the queue are dropped, and failures are left to the reader.
class LookAhead {
 public:
  LookAhead() = default;
  // Waits for running jobs.
  ~LookAhead();
  LookAhead(const LookAhead&) = delete;
  LookAhead& operator=(const LookAhead&) = delete;

  void add(const void* owner, std::function<void()> job);
  // Removes the owner's jobs, and waits for its running ones.
  void cancel(const void* owner);

 private:
  struct Job {
    const void* owner;
    std::function<void()> run;
  };
  void work();

  std::mutex mutex_;
  std::condition_variable added_, done_;
  std::deque<Job> jobs_;
  std::map<const void*, int> running_;
  bool ending_ = false;
  size_t idle_ = 0;
  std::vector<std::thread> threads_;
};

}  // namespace dtrain::remote
