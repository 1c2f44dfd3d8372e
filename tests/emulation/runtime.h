// Shared by the emulated runtime calls: streams, events and captures behind their handles, and the device lock.
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace emulation {

// Stream work: returns false to wait for another process; then it is called again.
using Operation = std::function<bool()>;

// Global lock of all runtime calls: the device is one processor.
class Call {
 public:
  Call();

 private:
  std::lock_guard<std::recursive_mutex> lock_;
};

// Scope of device work. With deferred streams, device memory faults at all other times, to detect host access.
class DeviceAccess {
 public:
  DeviceAccess();
  ~DeviceAccess();
  DeviceAccess(const DeviceAccess&) = delete;
  DeviceAccess& operator=(const DeviceAccess&) = delete;
};
void close_device_memory(bool closed);

// Creates a context on the thread's current device if there is none.
void use_current_device();

// Stores an error for cudaGetLastError(), and returns it.
cudaError_t report(cudaError_t error);

// Per stream: number of captured operations that are predecessors.
using Positions = std::map<cudaStream_t, size_t>;

// Streams captured into one graph.
struct Capture {
  std::unique_ptr<CUgraph_st> graph;
  cudaStream_t origin;
  cudaStreamCaptureMode mode;
  std::thread::id thread;
  bool invalid = false;
  Positions last;
  cudaGraph_t body = nullptr;  // body of a conditional node, which receives the graph at the end
};

// Value of a conditional node during a launch: nullopt until set.
using Condition = std::optional<unsigned>;

// One cudaEventRecord.
struct Record {
  cudaStream_t stream;
  bool done = false;
  std::chrono::steady_clock::time_point time{};
};

// Stream of a handle; null if there is none.
CUstream_st* find_stream(cudaStream_t handle);
// Run pending work of a stream, or up to a record, as far as possible; true if complete.
bool drain(CUstream_st& stream);
bool run_towards(const Record& record);
// Calls `done`, as one runtime call, until it is true. Other calls may run in between.
void wait_until(const std::function<bool()>& done);
void wait_for_all();
// `waits`: may wait for another process, whose host must not wait for this one: its stream progresses without runtime
// calls.
cudaError_t enqueue_operation(cudaStream_t stream, Operation operation, bool waits);

// Returns cudaErrorStreamCaptureUnsupported and invalidates captures if an unsafe call meets a capture that forbids it
// to this thread.
cudaError_t refuse_while_capturing();
// The same for captures of all threads.
cudaError_t refuse_while_any_captures();
// Refuses non-capturable work on a capturing stream.
cudaError_t refuse_on_captured(CUstream_st& stream);
// Appends a node to a capturing stream's graph.
void append(CUstream_st& stream, CUgraphNode_st node);
// Begins a capture into a new graph.
void begin_capture(CUstream_st& stream, cudaStreamCaptureMode mode, cudaGraph_t body);
// The event will be recorded by `stream`: when it gets there, it calls complete().
std::shared_ptr<Record> begin_record(CUevent_st& event, cudaStream_t stream);
void complete(Record& record);
// Ends the capture on its streams.
void leave(const Capture& capture);

}  // namespace emulation

struct CUgraphNode_st {
  emulation::Operation operation;
  cudaEvent_t event = nullptr;    // for an event-record node
  cudaStream_t stream = nullptr;  // capture stream; a conditional node has its own
  int priority = 0;               // of that stream
  emulation::Positions after{};
  emulation::Positions reached{};  // once completed
  size_t index = 0;                // in its graph
  std::shared_ptr<CUgraph_st> body{};
  cudaGraph_t body_handle = nullptr;
};
struct CUgraph_st {
  std::deque<CUgraphNode_st> nodes;
  bool waits = false;  // some node may wait
  std::vector<std::shared_ptr<emulation::Condition>> conditions{};
  std::shared_ptr<int> instance{};  // held by each instance of a graph with conditional nodes
};
struct CUgraphExec_st {
  std::shared_ptr<CUgraph_st> graph;
  std::shared_ptr<int> instance;
};
struct CUstream_st {
  bool blocking = true;  // synchronises with the legacy stream
  int priority = 0;
  std::deque<emulation::Operation> queue;
  bool due = false;                             // contains work that may wait for another process
  std::shared_ptr<emulation::Capture> capture;  // while capturing
  emulation::Positions after;                   // predecessors of the next captured operation
  cudaGraphNode_t last = nullptr;               // the captured operation that leaves it there, if there is one
};
struct CUevent_st {
  bool timed = true;
  std::shared_ptr<emulation::Record> record;    // last record outside of captures
  std::shared_ptr<emulation::Capture> capture;  // else the capture that recorded it
  emulation::Positions after;
};
