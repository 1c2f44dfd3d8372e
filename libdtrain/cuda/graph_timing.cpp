#include "libdtrain/cuda/graph_timing.h"

#include <algorithm>
#include <vector>

#include "libdtrain/cuda/step_graph.h"

namespace dtrain::cuda {
namespace {

constexpr int kRuns = 2;      // per graph
constexpr int kLaunches = 2;  // timed, after one warm-up launch; the minimum counts
// Milliseconds: more than the overhead of a launch. Eager work that exceeds the limit by this much also exceeds it on
// the device.
constexpr float kMostOfHost = 0.05f;

float milliseconds_between(const CudaEvent& begin, const CudaEvent& end) {
  float elapsed = 0;
  DT_CUDA(cudaEventElapsedTime(&elapsed, begin.get(), end.get()));
  return elapsed;
}

}  // namespace

float graph_milliseconds(const Context& context, const std::function<void()>& run, float limit) {
  const cudaStream_t stream = context.runtime().compute();
  std::vector<CudaEvent> events;
  const auto mark = [&] {
    events.push_back(make_event(/*timed=*/true));
    DT_CUDA(cudaEventRecord(events.back().get(), stream));
  };
  run();  // warm-up: loads the code and grows the memory pool
  mark();
  run();
  mark();
  DT_CUDA(cudaEventSynchronize(events.back().get()));
  const float once = milliseconds_between(events[0], events[1]);
  if (once > limit + kMostOfHost || context.runtime().options().sync_each_launch) return once;

  const uint64_t requests = context.memory_stats().system_calls;
  Capture capture(stream);
  for (int i = 0; i < kRuns; ++i) run();
  const Graph graph = capture.end();
  // Memory allocated or freed by the system since may be invalid when the graph runs.
  if (context.memory_stats().system_calls != requests) return once;
  cudaGraphExec_t made = nullptr;
  DT_CUDA(cudaGraphInstantiate(&made, graph.get(), 0));
  const GraphExec exec(made);
  events.clear();
  DT_CUDA(cudaGraphLaunch(exec.get(), stream));  // warm-up; meanwhile the host enqueues the timed launches
  for (int i = 0; i < kLaunches; ++i) {
    mark();
    DT_CUDA(cudaGraphLaunch(exec.get(), stream));
  }
  mark();
  DT_CUDA(cudaEventSynchronize(events.back().get()));
  float least = std::numeric_limits<float>::infinity();
  for (int i = 0; i < kLaunches; ++i) least = std::min(least, milliseconds_between(events[i], events[i + 1]));
  return least / kRuns;
}

}  // namespace dtrain::cuda
