// Conditional nodes: graph bodies executed depending on a value set by the graph itself.
#include <algorithm>
#include <utility>

#include "tests/emulation/block.h"
#include "tests/emulation/emulation.h"
#include "tests/emulation/runtime.h"

using emulation::Call;
using emulation::Condition;
using emulation::report;

namespace {

Condition& condition_of(cudaGraphConditionalHandle handle) { return *reinterpret_cast<Condition*>(handle); }

// Whether CUDA allows the nodes in a body.
bool fits_in_body(const CUgraph_st& graph) {
  return !graph.waits && std::ranges::all_of(graph.nodes, [](const CUgraphNode_st& node) { return !node.event; });
}

emulation::Operation run_if(cudaGraphConditionalHandle handle, std::shared_ptr<const CUgraph_st> body) {
  return [handle, body = std::move(body)] {
    const Condition value = std::exchange(condition_of(handle), {});
    if (!value) emulation::fail("a conditional node whose value nothing has set");
    if (!fits_in_body(*body)) emulation::fail("the body of a conditional node holds an event or a collective");
    for (const CUgraphNode_st& node : body->nodes)
      if (*value != 0) node.operation();
    return true;
  };
}

}  // namespace

void cudaGraphSetConditional(cudaGraphConditionalHandle handle, unsigned int value) { condition_of(handle) = value; }

cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle* handle, cudaGraph_t graph, unsigned int,
                                             unsigned int flags) {
  const Call call;
  if (flags != 0) return report(cudaErrorNotSupported);
  graph->conditions.push_back(std::make_shared<Condition>());
  *handle = reinterpret_cast<cudaGraphConditionalHandle>(graph->conditions.back().get());
  return cudaSuccess;
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t handle, cudaStreamCaptureStatus* status, unsigned long long*,
                                     cudaGraph_t* graph, const cudaGraphNode_t** last, const cudaGraphEdgeData** edges,
                                     size_t* count) {
  const Call call;
  CUstream_st* stream = emulation::find_stream(handle);
  if (stream == nullptr) return report(cudaErrorInvalidResourceHandle);
  if (const cudaError_t error = cudaStreamIsCapturing(handle, status); error != cudaSuccess) return error;
  if (*status != cudaStreamCaptureStatusActive) return cudaSuccess;
  if (edges != nullptr) return report(cudaErrorNotSupported);
  *graph = stream->capture->graph.get();
  *last = &stream->last;
  *count = stream->last != nullptr ? 1 : 0;
  return cudaSuccess;
}

cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t handle, cudaGraphNode_t* nodes, const cudaGraphEdgeData*,
                                                size_t count, unsigned int flags) {
  const Call call;
  CUstream_st* stream = emulation::find_stream(handle);
  if (stream == nullptr || !stream->capture) return report(cudaErrorInvalidResourceHandle);
  if (count != 1 || flags != cudaStreamSetCaptureDependencies) return report(cudaErrorNotSupported);
  stream->after = nodes[0]->reached;
  stream->last = nodes[0];
  return cudaSuccess;
}

cudaError_t cudaGraphAddNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                             const cudaGraphEdgeData*, size_t count, cudaGraphNodeParams* parameters) {
  const Call call;
  cudaConditionalNodeParams& conditional = parameters->conditional;
  const bool is_if = parameters->type == cudaGraphNodeTypeConditional && conditional.type == cudaGraphCondTypeIf;
  if (!is_if || conditional.size != 1 || count != 1) return report(cudaErrorNotSupported);
  CUstream_st* stream = emulation::find_stream(after[0]->stream);
  if (stream == nullptr || !stream->capture) return report(cudaErrorNotSupported);
  CUgraphNode_st& added = graph->nodes.emplace_back();
  added.body = std::make_shared<CUgraph_st>();
  added.operation = run_if(conditional.handle, added.body);
  added.stream = reinterpret_cast<cudaStream_t>(added.body.get());
  added.after = added.reached = after[0]->reached;
  added.reached[added.stream] = stream->capture->last[added.stream] = 1;
  added.index = graph->nodes.size() - 1;
  graph->instance = std::make_shared<int>();
  conditional.phGraph_out = &(added.body_handle = added.body.get());
  *node = &added;
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t handle, cudaGraph_t graph, const cudaGraphNode_t*,
                                          const cudaGraphEdgeData*, size_t count, cudaStreamCaptureMode mode) {
  const Call call;
  CUstream_st* stream = emulation::find_stream(handle);
  if (handle == nullptr || stream == nullptr) return report(cudaErrorInvalidResourceHandle);
  if (stream->capture) return report(cudaErrorIllegalState);
  if (count != 0 || !graph->nodes.empty()) return report(cudaErrorNotSupported);
  emulation::begin_capture(*stream, mode, graph);
  return cudaSuccess;
}
