#include "libdtrain/cuda/conditional_node.h"

#include "libdtrain/cuda/kernels.cuh"
namespace dtrain::cuda {

#if CUDART_VERSION < 12040

bool has_conditional_nodes() { return false; }
bool is_conditional(cudaGraphNodeType) { return false; }

void capture_if_above(Context&, const float*, float, const std::function<void()>&) {
  throw Error("conditional nodes need a build with CUDA 12.4 or later");
}

#else

namespace {

constexpr int kSince = 12040;

__global__ void set_condition_kernel(cudaGraphConditionalHandle handle, const float* count, float above) {
  cudaGraphSetConditional(handle, *count > above ? 1u : 0u);
}

// Graph that a stream captures into, and the nodes that the next node depends on.
struct Position {
  cudaGraph_t graph;
  const cudaGraphNode_t* last;
  size_t count;
};

// Since CUDA 13 these calls also take edge data, unused here.
#if CUDART_VERSION >= 13000
Position position_of(cudaStream_t stream) {
  cudaStreamCaptureStatus status{};
  Position at{};
  DT_CUDA(cudaStreamGetCaptureInfo(stream, &status, nullptr, &at.graph, &at.last, nullptr, &at.count));
  return at;
}
cudaGraphNode_t add_node(const Position& at, cudaGraphNodeParams& parameters) {
  cudaGraphNode_t node = nullptr;
  DT_CUDA(cudaGraphAddNode(&node, at.graph, at.last, nullptr, at.count, &parameters));
  return node;
}
void go_on_after(cudaGraphNode_t node, cudaStream_t stream) {
  DT_CUDA(cudaStreamUpdateCaptureDependencies(stream, &node, nullptr, 1, cudaStreamSetCaptureDependencies));
}
#else
Position position_of(cudaStream_t stream) {
  cudaStreamCaptureStatus status{};
  Position at{};
  DT_CUDA(cudaStreamGetCaptureInfo_v2(stream, &status, nullptr, &at.graph, &at.last, &at.count));
  return at;
}
cudaGraphNode_t add_node(const Position& at, cudaGraphNodeParams& parameters) {
  cudaGraphNode_t node = nullptr;
  DT_CUDA(cudaGraphAddNode(&node, at.graph, at.last, at.count, &parameters));
  return node;
}
void go_on_after(cudaGraphNode_t node, cudaStream_t stream) {
  DT_CUDA(cudaStreamUpdateCaptureDependencies(stream, &node, 1, cudaStreamSetCaptureDependencies));
}
#endif

// Captures the compute stream's work into `body`, which its node owns.
class BodyCapture {
 public:
  BodyCapture(Runtime& runtime, cudaGraph_t body) : runtime_(runtime), body_(body) {
    DT_CUDA(cudaStreamBeginCaptureToGraph(runtime.body_stream(), body, nullptr, nullptr, 0,
                                          cudaStreamCaptureModeThreadLocal));
    runtime_.capture_body(true);
  }
  ~BodyCapture() {
    if (!runtime_.in_body()) return;
    static_cast<void>(leave());
    static_cast<void>(cudaGetLastError());  // clears the error, else the next launch would report it
  }
  BodyCapture(const BodyCapture&) = delete;
  BodyCapture& operator=(const BodyCapture&) = delete;
  void end() { DT_CUDA(leave()); }

 private:
  cudaError_t leave() {
    runtime_.capture_body(false);
    return cudaStreamEndCapture(runtime_.body_stream(), &body_);
  }

  Runtime& runtime_;
  cudaGraph_t body_;
};

}  // namespace

bool has_conditional_nodes() {
  static const bool has = [] {
    int driver = 0;
    DT_CUDA(cudaDriverGetVersion(&driver));
    return driver >= kSince;
  }();
  return has;
}

bool is_conditional(cudaGraphNodeType type) { return type == cudaGraphNodeTypeConditional; }

void capture_if_above(Context& context, const float* count, float above, const std::function<void()>& work) {
  Runtime& runtime = context.runtime();
  const cudaStream_t compute = runtime.compute();
  cudaGraphConditionalHandle handle{};
  DT_CUDA(cudaGraphConditionalHandleCreate(&handle, position_of(compute).graph));
  launch(context, set_condition_kernel, {1, 1}, handle, count, above);
  cudaGraphNodeParams parameters{};
  parameters.type = cudaGraphNodeTypeConditional;
  parameters.conditional.handle = handle;
  parameters.conditional.type = cudaGraphCondTypeIf;
  parameters.conditional.size = 1;
  const cudaGraphNode_t node = add_node(position_of(compute), parameters);
  go_on_after(node, compute);
  BodyCapture body(runtime, parameters.conditional.phGraph_out[0]);
  work();
  body.end();
}

#endif

}  // namespace dtrain::cuda
