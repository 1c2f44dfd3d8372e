// What the emulated runtime calls share: streams, events and captures behind their handles, and the lock of the device.
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace emulation {

using Operation = std::function<void()>;

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
};

// One cudaEventRecord.
struct Record {
  cudaStream_t stream;
  bool done = false;
  std::chrono::steady_clock::time_point time{};
};

// The stream of a handle, null for the legacy one; null where there is none.
CUstream_st* find_stream(cudaStream_t handle);
// Runs what waits on a stream; on all streams.
void drain(CUstream_st& stream);
void drain_all();
void run_until_done(const Record& record);

// cudaErrorStreamCaptureUnsupported, and captures become invalid, where a call that CUDA calls unsafe meets a capture
// that forbids it to this thread.
cudaError_t refuse_while_capturing();
// The same for any capture, whoever began it.
cudaError_t refuse_while_any_captures();
// What keeps a stream that records from doing anything but recording.
cudaError_t refuse_on_captured(CUstream_st& stream);
// Records an operation on a stream that is captured.
void append(CUstream_st& stream, Operation operation);
// Its streams record no more.
void leave(const Capture& capture);

}  // namespace emulation

struct CUgraph_st {
  std::vector<emulation::Operation> operations;
};
struct CUgraphExec_st {
  std::shared_ptr<const std::vector<emulation::Operation>> operations;
};
struct CUstream_st {
  bool blocking = true;  // waits for the legacy stream, and it for this one
  std::deque<emulation::Operation> queue;
  std::shared_ptr<emulation::Capture> capture;  // while it records
  emulation::Positions after;                   // what its next captured operation comes after
};
struct CUevent_st {
  bool timed = true;
  std::shared_ptr<emulation::Record> record;    // the last one, where it was not captured
  std::shared_ptr<emulation::Capture> capture;  // else what recorded it
  emulation::Positions after;
};
