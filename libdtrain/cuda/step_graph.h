// StepGraph: the work of a step, recorded once and queued again as one. Capture: its recording.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "libdtrain/core/event.h"
#include "libdtrain/core/memory.h"
#include "libdtrain/cuda/cuda.h"

namespace dtrain::cuda {

class StepGraph {
 public:
  // `stamps`: events that `recorded` records for others than itself. `memory` holds the temporaries whose addresses are
  // in the graph; nothing but graphs that never run at the same time may take from it.
  StepGraph(Graph recorded, const std::vector<CudaEvent>& stamps, std::shared_ptr<CachingAllocator> memory);
  // Returns the stamps, as of this launch.
  std::vector<Event> launch(cudaStream_t stream);

 private:
  // What can be launched. A launch records the events of the instance's last one anew, so it takes an instance whose
  // events have all been read.
  struct Instance {
    std::vector<std::shared_ptr<CUevent_st>> stamps;
    GraphExec exec;
    bool is_free() const;
  };
  Instance& free_instance();
  Instance& add_instance();
  // Gives it other events to record from its next launch on.
  void renew_stamps(Instance& instance);

  std::shared_ptr<CachingAllocator> memory_;
  Graph graph_;
  std::vector<cudaGraphNode_t> stamping_;  // its nodes that record the stamps
  bool single_;                            // it has conditional nodes, and so one instance at most
  std::deque<Instance> instances_;
};

// What is queued on `stream` by this thread, and what is queued elsewhere and waits for it, is recorded and not run,
// until end(), or to no purpose where it is not called.
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
