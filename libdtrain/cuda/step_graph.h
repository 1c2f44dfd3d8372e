// StepGraph: the work of a step, recorded once and queued again as one. Capture: its recording.
#pragma once

#include <memory>

#include "libdtrain/core/memory.h"
#include "libdtrain/cuda/cuda.h"

namespace dtrain::cuda {

class StepGraph {
 public:
  // `memory`: of the temporaries whose addresses the graph holds; nothing else may take from it.
  StepGraph(Graph recorded, std::shared_ptr<CachingAllocator> memory);
  void launch(cudaStream_t stream) const;

 private:
  std::shared_ptr<CachingAllocator> memory_;
  GraphExec exec_;
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
