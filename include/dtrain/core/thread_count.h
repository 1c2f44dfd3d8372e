// ThreadCount: scoped OpenMP thread count, and a check that threads can be created.
#pragma once

namespace dtrain {

// Sets the thread count of parallel regions opened by the calling thread, for its lifetime. OpenMP keeps it per thread;
// oneDNN reads it when it creates and when it executes a primitive.
class ThreadCount {
 public:
  explicit ThreadCount(int threads);
  ~ThreadCount();
  ThreadCount(const ThreadCount&) = delete;
  ThreadCount& operator=(const ThreadCount&) = delete;

 private:
  int threads_, dynamic_;  // previous values
};

// Starts and joins `count` concurrent threads. Throws Error(Fault::resource) if the system refuses one, where OpenMP
// would end the process.
void require_threads(int count);

}  // namespace dtrain
