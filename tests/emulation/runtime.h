// What the emulated runtime calls share: streams, events and captures behind their handles, and the lock of the device.
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

// Work of a stream: false where it must wait for another process; then it is called again.
using Operation = std::function<bool()>;

// Every call of the runtime holds it: the device is one processor.
class Call {
 public:
  Call();

 private:
  std::lock_guard<std::recursive_mutex> lock_;
};

// While the device works. Where streams are deferred, its memory faults at all other times: the host must not touch it.
class DeviceAccess {
 public:
  DeviceAccess();
  ~DeviceAccess();
  DeviceAccess(const DeviceAccess&) = delete;
  DeviceAccess& operator=(const DeviceAccess&) = delete;
};
void close_device_memory(bool closed);

// The call makes a context on its thread's device where there is none.
void use_current_device();

// Keeps an error for cudaGetLastError(), and gives it back.
cudaError_t report(cudaError_t error);

// How many captured operations of each stream something comes after.
using Positions = std::map<cudaStream_t, size_t>;

// Streams that record into one graph.
struct Capture {
  std::unique_ptr<CUgraph_st> graph;
  cudaStream_t origin;
  cudaStreamCaptureMode mode;
  std::thread::id thread;
  bool invalid = false;
  Positions last;
  cudaGraph_t body = nullptr;  // of a conditional node: gets the graph in the end
};

// The value of a conditional node, while a graph runs: nothing until the graph has set it.
using Condition = std::optional<unsigned>;

// One cudaEventRecord.
struct Record {
  cudaStream_t stream;
  bool done = false;
  std::chrono::steady_clock::time_point time{};
};

// The stream of a handle, null for the legacy one; null where there is none.
CUstream_st* find_stream(cudaStream_t handle);
// Run what waits on a stream, or on its stream before a record is done, as far as that goes now; true where all is
// done.
bool drain(CUstream_st& stream);
bool run_towards(const Record& record);
// Calls `done`, as one call of the runtime, until it is true. Others may call meanwhile.
void wait_until(const std::function<bool()>& done);
void wait_for_all();
// `waits`: it may have to wait for another process, whose host must not wait for this one: its stream gets on also
// while nobody calls.
cudaError_t enqueue_operation(cudaStream_t stream, Operation operation, bool waits);

// cudaErrorStreamCaptureUnsupported, and captures become invalid, where a call that CUDA calls unsafe meets a capture
// that forbids it to this thread.
cudaError_t refuse_while_capturing();
// The same for any capture, whoever began it.
cudaError_t refuse_while_any_captures();
// What keeps a stream that records from doing anything but recording.
cudaError_t refuse_on_captured(CUstream_st& stream);
// Records a node on a stream that is captured.
void append(CUstream_st& stream, CUgraphNode_st node);
// The stream records into a graph of its own from now on.
void begin_capture(CUstream_st& stream, cudaStreamCaptureMode mode, cudaGraph_t body);
// The event is, from now on, one that `stream` will record: where the record comes to that, it calls complete().
std::shared_ptr<Record> begin_record(CUevent_st& event, cudaStream_t stream);
void complete(Record& record);
// Its streams record no more.
void leave(const Capture& capture);

}  // namespace emulation

struct CUgraphNode_st {
  emulation::Operation operation;
  cudaEvent_t event = nullptr;    // which it records instead
  cudaStream_t stream = nullptr;  // that it was captured on; a conditional node has one of its own
  int priority = 0;               // that stream's
  emulation::Positions after{};
  emulation::Positions reached{};  // once it is done
  size_t index = 0;                // in its graph
  std::shared_ptr<CUgraph_st> body{};
  cudaGraph_t body_handle = nullptr;
};
struct CUgraph_st {
  std::deque<CUgraphNode_st> nodes;
  bool waits = false;  // one of them may
  std::vector<std::shared_ptr<emulation::Condition>> conditions{};
  std::shared_ptr<int> instance{};  // held by each instance of a graph with conditional nodes
};
struct CUgraphExec_st {
  std::shared_ptr<CUgraph_st> graph;
  std::shared_ptr<int> instance;
};
struct CUstream_st {
  bool blocking = true;  // waits for the legacy stream, and it for this one
  int priority = 0;
  std::deque<emulation::Operation> queue;
  bool due = false;                             // something in it may wait for another process
  std::shared_ptr<emulation::Capture> capture;  // while it records
  emulation::Positions after;                   // what its next captured operation comes after
  cudaGraphNode_t last = nullptr;               // the captured operation that leaves it there, if it is one
};
struct CUevent_st {
  bool timed = true;
  std::shared_ptr<emulation::Record> record;    // the last one, where it was not captured
  std::shared_ptr<emulation::Capture> capture;  // else what recorded it
  emulation::Positions after;
};
