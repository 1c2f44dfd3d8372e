// StepGraph: a training step as an executable CUDA graph. Capture: stream capture of it.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "dtrain/core/event.h"
#include "dtrain/core/memory.h"
#include "libdtrain/cuda/cuda.h"

namespace dtrain::cuda {

class StepGraph {
 public:
  // `stamps`: external event nodes of the graph. `memory`: pool of the temporaries whose addresses are in the graph;
  // only graphs that never run concurrently may share it.
  StepGraph(Graph recorded, const std::vector<CudaEvent>& stamps, std::shared_ptr<CachingAllocator> memory);
  // Launches the graph; returns the events of this launch's stamps.
  std::vector<Event> launch(cudaStream_t stream);

 private:
  // Executable graph. A launch overwrites the events of the instance's previous launch, so it takes an instance whose
  // events are no longer held.
  struct Instance {
    std::vector<std::shared_ptr<CUevent_st>> stamps;
    GraphExec exec;
    bool is_free() const;
  };
  Instance& free_instance();
  Instance& add_instance();
  // Replaces the instance's events from its next launch on.
  void renew_stamps(Instance& instance);

  std::shared_ptr<CachingAllocator> memory_;
  Graph graph_;
  std::vector<cudaGraphNode_t> stamping_;  // external event-record nodes
  bool single_;                            // at most one instance: the graph has conditional nodes
  std::deque<Instance> instances_;
};

// Captures work enqueued on `stream` by this thread, and on streams that wait for it, until end(). Destruction without
// end() discards the capture.
class Capture {
 public:
  explicit Capture(cudaStream_t stream);
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  Graph end();

 private:
  cudaStream_t stream_;
  bool active_ = true;
};

}  // namespace dtrain::cuda
