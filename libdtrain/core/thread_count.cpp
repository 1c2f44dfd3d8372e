#include "dtrain/core/thread_count.h"

#include <omp.h>

#include <latch>
#include <system_error>
#include <thread>
#include <vector>

#include "dtrain/core/error.h"

namespace dtrain {

ThreadCount::ThreadCount(int threads) : threads_(omp_get_max_threads()), dynamic_(omp_get_dynamic()) {
  omp_set_num_threads(threads);
  omp_set_dynamic(0);
}

ThreadCount::~ThreadCount() {
  omp_set_num_threads(threads_);
  omp_set_dynamic(dynamic_);
}

void require_threads(int count) {
  std::latch end(1);
  std::vector<std::jthread> threads;
  const struct Release {
    std::latch& latch;
    ~Release() { latch.count_down(); }
  } release{end};  // before the threads are joined
  try {
    while (static_cast<int>(threads.size()) < count) threads.emplace_back([&] { end.wait(); });
  } catch (const std::system_error& error) {
    throw Error(Fault::resource,
                concat("the system refuses thread ", threads.size() + 1, " of ", count, " (", error.code().message(),
                       "): use fewer threads, or raise what `ulimit -u` and ", "`ulimit -v` allow"));
  }
}

}  // namespace dtrain
