// Ops use their context's thread count on any calling thread.
#include "dtrain/core/thread_count.h"

#include <omp.h>

#include <thread>

#include "dtrain/core/dispatch.h"
#include "tests/testing.h"

namespace dtrain {

// Op that reports its thread count.
namespace cpu {
int count_threads(Context&) { return omp_get_max_threads(); }
}  // namespace cpu
#ifdef DTRAIN_WITH_CUDA
namespace cuda {
int count_threads(Context&) { return 0; }
}  // namespace cuda
#endif

namespace {

int threads_of_an_op(Context& context) { return DT_DISPATCH(context, count_threads)(); }

TEST(ThreadCount, IsThatOfTheContextOnEveryThread) {
  const auto one = make_cpu_context({.threads = 1}), three = make_cpu_context({.threads = 3});
  const int usual = omp_get_max_threads();
  const auto expect_counts = [&] {
    const int before = omp_get_max_threads();
    EXPECT_EQ(threads_of_an_op(*one), 1);
    EXPECT_EQ(threads_of_an_op(*three), 3);
    EXPECT_EQ(threads_of_an_op(*one), 1);
    EXPECT_EQ(omp_get_max_threads(), before);
  };
  expect_counts();
  std::thread(expect_counts).join();
  EXPECT_EQ(omp_get_max_threads(), usual);
}

TEST(ThreadCount, OfAContextIsNotThatOfTheProgramsOwnLoops) {
  omp_set_num_threads(5);
  EXPECT_EQ(make_cpu_context()->threads(), 5);
  const auto context = make_cpu_context({.threads = 2});
  EXPECT_EQ(context->threads(), 2);
  EXPECT_EQ(omp_get_max_threads(), 5);
  omp_set_num_threads(4);
  EXPECT_EQ(threads_of_an_op(*context), 2);
}

}  // namespace
}  // namespace dtrain
