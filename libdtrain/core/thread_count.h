// ThreadCount: how many threads the parallel regions of a piece of work have, and whether there can be so many.
#pragma once

namespace dtrain {

// While it lives, the regions that the calling thread opens have `threads` threads: OpenMP keeps that number for each
// thread apart, and oneDNN asks it both when it makes a primitive and when it runs one.
class ThreadCount {
 public:
  explicit ThreadCount(int threads);
  ~ThreadCount();
  ThreadCount(const ThreadCount&) = delete;
  ThreadCount& operator=(const ThreadCount&) = delete;

 private:
  int threads_, dynamic_;  // as they were before
};

// Starts so many threads beside each other and ends them. Throws Error(Fault::resource) where the system refuses one:
// OpenMP would end the process.
void require_threads(int count);

}  // namespace dtrain
