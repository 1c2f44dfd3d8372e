// dtrain-cnn-benchmarks: trains, evaluates and benchmarks image classifiers, compatible with tf_cnn_benchmarks.
#include "apps/cli/environment.h"
#include "apps/cli/run_main.h"
#include "apps/cnn_benchmarks/program.h"

int main(int argc, char** argv) {
  dtrain::cli::let_waiting_threads_sleep(argv);
  return dtrain::cli::run_main([&] { return dtrain::cnn_benchmarks::run_program({argv, argv + argc}); });
}
