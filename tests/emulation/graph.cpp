#include <algorithm>
#include <set>

#include "tests/emulation/emulation.h"
#include "tests/emulation/runtime.h"

using emulation::Call;
using emulation::Capture;
using emulation::Record;
using emulation::report;

namespace {

// One launch of a graph: nodes in capture order, except that nodes waiting for another process are deferred with their
// successors.
struct Run {
  std::shared_ptr<const CUgraph_st> graph;
  std::vector<std::shared_ptr<Record>> records;  // by node, for event-record nodes
  std::vector<bool> done = std::vector<bool>(graph->nodes.size());
  emulation::Positions reached{};

  bool operator()() {
    bool all = true;
    std::set<cudaStream_t> stuck;
    for (size_t i = 0; i < graph->nodes.size(); ++i) {
      const CUgraphNode_st& node = graph->nodes[i];
      if (done[i]) continue;
      const bool due = !stuck.contains(node.stream) && std::ranges::all_of(node.after, [&](const auto& other) {
        return reached[other.first] >= other.second;
      });
      done[i] = due && run(i);
      if (done[i])
        ++reached[node.stream];
      else
        stuck.insert(node.stream);
      all = all && done[i];
    }
    return all;
  }
  bool run(size_t i) const {
    if (!records[i]) return graph->nodes[i].operation();
    emulation::complete(*records[i]);
    return true;
  }
};

}  // namespace

void emulation::append(CUstream_st& stream, CUgraphNode_st node) {
  auto& nodes = stream.capture->graph->nodes;
  node.stream = &stream;
  node.priority = stream.priority;
  node.after = stream.after;
  node.index = nodes.size();
  stream.after[&stream] = ++stream.capture->last[&stream];
  node.reached = stream.after;
  nodes.push_back(std::move(node));
  stream.last = &nodes.back();
}

void emulation::begin_capture(CUstream_st& stream, cudaStreamCaptureMode mode, cudaGraph_t body) {
  stream.capture = std::make_shared<Capture>(
      Capture{std::make_unique<CUgraph_st>(), &stream, mode, std::this_thread::get_id(), false, {}, body});
  stream.after.clear();
  stream.last = nullptr;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  const Call call;
  if (handle == nullptr) return report(cudaErrorStreamCaptureUnsupported);
  CUstream_st* stream = emulation::find_stream(handle);
  if (stream == nullptr) return report(cudaErrorInvalidResourceHandle);
  if (stream->capture) return report(cudaErrorIllegalState);
  emulation::begin_capture(*stream, mode, nullptr);
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  const Call call;
  *graph = nullptr;
  CUstream_st* stream = emulation::find_stream(handle);
  if (stream == nullptr) return report(cudaErrorInvalidResourceHandle);
  const std::shared_ptr<Capture> capture = stream->capture;
  if (!capture) return report(cudaErrorIllegalState);
  if (capture->origin != stream) return report(cudaErrorStreamCaptureUnmatched);
  if (capture->mode != cudaStreamCaptureModeRelaxed && capture->thread != std::this_thread::get_id())
    return report(cudaErrorStreamCaptureWrongThread);
  bool joined = true;
  for (const auto& [other, count] : capture->last) joined = joined && stream->after[other] == count;
  emulation::leave(*capture);
  const std::unique_ptr<CUgraph_st> recorded = std::move(capture->graph);
  if (capture->invalid) return report(cudaErrorStreamCaptureInvalidated);
  if (!joined) return report(cudaErrorStreamCaptureUnjoined);
  *graph = capture->body != nullptr ? capture->body : new CUgraph_st;
  **graph = *recorded;
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* status) {
  const Call call;
  const CUstream_st* stream = emulation::find_stream(handle);
  if (stream == nullptr) return report(cudaErrorInvalidResourceHandle);
  *status = !stream->capture           ? cudaStreamCaptureStatusNone
            : stream->capture->invalid ? cudaStreamCaptureStatusInvalidated
                                       : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  const size_t room = *count;
  *count = graph->nodes.size();
  for (size_t i = 0; nodes != nullptr && i < room; ++i) nodes[i] = i < *count ? &graph->nodes[i] : nullptr;
  return cudaSuccess;
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
  *type = node->event != nullptr  ? cudaGraphNodeTypeEventRecord
          : node->body != nullptr ? cudaGraphNodeTypeConditional
                                  : cudaGraphNodeTypeKernel;
  return cudaSuccess;
}

cudaError_t cudaGraphEventRecordNodeGetEvent(cudaGraphNode_t node, cudaEvent_t* event) {
  if (node->event == nullptr) return report(cudaErrorInvalidValue);
  *event = node->event;
  return cudaSuccess;
}

cudaError_t cudaGraphEventRecordNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event) {
  if (node->event == nullptr || event == nullptr) return report(cudaErrorInvalidValue);
  node->event = event;
  return cudaSuccess;
}

cudaError_t cudaGraphExecEventRecordNodeSetEvent(cudaGraphExec_t exec, cudaGraphNode_t node, cudaEvent_t event) {
  const Call call;
  if (node->event == nullptr || event == nullptr) return report(cudaErrorInvalidValue);
  exec->graph->nodes.at(node->index).event = event;
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags) {
  if (graph->instance.use_count() > 1) return report(cudaErrorNotSupported);
  const auto& nodes = graph->nodes;
  if ((flags & cudaGraphInstantiateFlagUseNodePriority) == 0 &&
      std::ranges::any_of(nodes, [&](const auto& node) { return node.priority != nodes.front().priority; }))
    return report(cudaErrorNotSupported);
  *exec = new CUgraphExec_st{std::make_shared<CUgraph_st>(*graph), graph->instance};
  (*exec)->graph->instance.reset();
  return cudaSuccess;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return cudaSuccess; }

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t handle) {
  const Call call;
  CUstream_st* stream = emulation::find_stream(handle);
  if (stream == nullptr) return report(cudaErrorInvalidResourceHandle);
  std::vector<std::shared_ptr<Record>> records;  // by node: its events belong to this launch from now on
  for (const CUgraphNode_st& node : exec->graph->nodes)
    records.push_back(node.event != nullptr ? emulation::begin_record(*node.event, stream) : nullptr);
  return emulation::enqueue_operation(handle, Run{exec->graph, std::move(records)}, exec->graph->waits);
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  delete exec;
  return cudaSuccess;
}
