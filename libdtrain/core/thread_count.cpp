#include "libdtrain/core/thread_count.h"

#include <omp.h>

namespace dtrain {

ThreadCount::ThreadCount(int threads) : threads_(omp_get_max_threads()), dynamic_(omp_get_dynamic()) {
  omp_set_num_threads(threads);
  omp_set_dynamic(0);
}

ThreadCount::~ThreadCount() {
  omp_set_num_threads(threads_);
  omp_set_dynamic(dynamic_);
}

}  // namespace dtrain
