#include "tests/emulation/emulation.h"
#include "tests/emulation/runtime.h"

using emulation::Call;
using emulation::Capture;
using emulation::Operation;
using emulation::report;

void emulation::append(CUstream_st& stream, Operation operation) {
  stream.capture->graph->operations.push_back(std::move(operation));
  stream.after[&stream] = ++stream.capture->last[&stream];
}

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  const Call call;
  if (handle == nullptr) return report(cudaErrorStreamCaptureUnsupported);
  CUstream_st* stream = emulation::find_stream(handle);
  if (stream == nullptr) return report(cudaErrorInvalidResourceHandle);
  if (stream->capture) return report(cudaErrorIllegalState);
  stream->capture = std::make_shared<Capture>(
      Capture{std::make_unique<CUgraph_st>(), stream, mode, std::this_thread::get_id(), false, {}});
  stream->after.clear();
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
  *graph = new CUgraph_st(*recorded);
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
  if (nodes != nullptr) return report(cudaErrorNotSupported);
  *count = graph->operations.size();
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  *exec = new CUgraphExec_st{std::make_shared<const CUgraph_st>(*graph)};
  return cudaSuccess;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return cudaSuccess; }

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  const auto run = [graph = exec->graph, next = size_t{0}]() mutable {
    for (; next < graph->operations.size(); ++next)
      if (!graph->operations[next]()) return false;
    next = 0;
    return true;
  };
  return emulation::enqueue_operation(stream, run, exec->graph->waits);
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  delete exec;
  return cudaSuccess;
}
