#include "libdtrain/cuda/step_graph.h"

#include <utility>

namespace dtrain::cuda {

StepGraph::StepGraph(Graph recorded, std::shared_ptr<CachingAllocator> memory) : memory_(std::move(memory)) {
  cudaGraphExec_t exec = nullptr;
  DT_CUDA(cudaGraphInstantiate(&exec, recorded.get(), 0));
  exec_.reset(exec);
}

void StepGraph::launch(cudaStream_t stream) const { DT_CUDA(cudaGraphLaunch(exec_.get(), stream)); }

// Thread-local: what the loader's threads ask of the runtime meanwhile is allowed and no part of the step.
Capture::Capture(cudaStream_t stream) : stream_(stream) {
  DT_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
}

Capture::~Capture() {
  if (!active_) return;
  cudaGraph_t graph = nullptr;
  static_cast<void>(cudaStreamEndCapture(stream_, &graph));
  if (graph != nullptr) static_cast<void>(cudaGraphDestroy(graph));
  static_cast<void>(cudaGetLastError());  // it would show up at the next launch
}

Graph Capture::end() {
  cudaGraph_t graph = nullptr;
  active_ = false;
  DT_CUDA(cudaStreamEndCapture(stream_, &graph));
  return Graph(graph);
}

}  // namespace dtrain::cuda
