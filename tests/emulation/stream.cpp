#include <atomic>
#include <cstdlib>
#include <cstring>

#include "tests/emulation/block.h"
#include "tests/emulation/emulation.h"
#include "tests/emulation/runtime.h"

namespace emulation {
namespace {

Streams streams_at_start() {
  const char* name = std::getenv("DTRAIN_EMULATION_STREAMS");
  if (name == nullptr || std::strcmp(name, "eager") == 0) return Streams::eager;
  if (std::strcmp(name, "deferred") == 0) return Streams::deferred;
  fail("DTRAIN_EMULATION_STREAMS=%s: expected eager or deferred", name);
}

Streams chosen_streams = streams_at_start();

std::recursive_mutex& device_mutex() {
  static std::recursive_mutex mutex;
  return mutex;
}

// All streams, the legacy one first.
std::vector<std::unique_ptr<CUstream_st>>& all_streams() {
  static auto streams = [] {
    std::vector<std::unique_ptr<CUstream_st>> first;
    first.push_back(std::make_unique<CUstream_st>());
    return first;
  }();
  return streams;
}

bool is_legacy(const CUstream_st& stream) { return &stream == all_streams().front().get(); }

bool drain_blocking() {
  bool done = true;
  for (const auto& stream : all_streams())
    if (stream->blocking) done = drain(*stream) && done;
  return done;
}

bool drain_all() {
  bool done = true;
  for (const auto& stream : all_streams()) done = drain(*stream) && done;
  return done;
}

cudaError_t enqueue_legacy(Operation& work) {
  for (const auto& stream : all_streams()) {
    if (!stream->blocking || !stream->capture) continue;
    stream->capture->invalid = true;
    return cudaErrorStreamCaptureImplicit;
  }
  const DeviceAccess access;
  if (!drain_blocking() || !work()) fail("work on the legacy stream would wait for another process");
  return cudaSuccess;
}

// Runs the first operation of a stream.
bool run_front(CUstream_st& stream) {
  Operation next = std::move(stream.queue.front());
  stream.queue.pop_front();
  if (next()) return true;
  stream.queue.push_front(std::move(next));
  return false;
}

// Background thread: progresses streams that other processes wait for while the host is busy.
class Progress {
 public:
  Progress() : thread_([this] { run(); }) {}
  ~Progress() {
    stopping_ = true;
    thread_.join();
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

 private:
  void run() {
    for (; !stopping_; std::this_thread::sleep_for(std::chrono::milliseconds(1))) {
      const Call call;
      for (const auto& stream : all_streams())
        if (stream->due) drain(*stream);
    }
  }
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

cudaError_t refuse_captures_where(const std::function<bool(const Capture&)>& forbids) {
  cudaError_t error = cudaSuccess;
  for (const auto& stream : all_streams()) {
    if (!stream->capture || !forbids(*stream->capture)) continue;
    stream->capture->invalid = true;
    error = cudaErrorStreamCaptureUnsupported;
  }
  return error;
}

// cudaThreadExchangeStreamCaptureMode is per thread.
thread_local cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;

}  // namespace

Call::Call() : lock_(device_mutex()) {}

void set_streams(Streams streams) {
  wait_for_all();
  const Call call;
  chosen_streams = streams;
  close_device_memory(streams == Streams::deferred);
}
Streams streams() { return chosen_streams; }

CUstream_st* find_stream(cudaStream_t handle) {
  if (handle == nullptr) return all_streams().front().get();
  for (const auto& stream : all_streams())
    if (stream.get() == handle) return handle;
  return nullptr;
}

bool drain(CUstream_st& stream) {
  if (stream.queue.empty()) return true;
  const DeviceAccess access;
  while (!stream.queue.empty())
    if (!run_front(stream)) return false;
  stream.due = false;
  return true;
}

bool run_towards(const Record& record) {
  const DeviceAccess access;
  while (!record.done)
    if (!run_front(*record.stream)) return false;
  return true;
}

void wait_until(const std::function<bool()>& done) {
  for (;; std::this_thread::sleep_for(std::chrono::microseconds(50))) {
    const Call call;
    if (done()) return;
  }
}

void wait_for_all() { wait_until(drain_all); }

cudaError_t refuse_while_capturing() {
  if (thread_mode == cudaStreamCaptureModeRelaxed) return cudaSuccess;
  return refuse_captures_where([](const Capture& capture) {
    if (capture.mode == cudaStreamCaptureModeRelaxed) return false;
    if (capture.thread == std::this_thread::get_id()) return true;
    return thread_mode == cudaStreamCaptureModeGlobal && capture.mode == cudaStreamCaptureModeGlobal;
  });
}

cudaError_t refuse_while_any_captures() {
  return refuse_captures_where([](const Capture&) { return true; });
}

cudaError_t refuse_on_captured(CUstream_st& stream) {
  if (!stream.capture) return refuse_while_capturing();
  stream.capture->invalid = true;
  return cudaErrorStreamCaptureUnsupported;
}

void leave(const Capture& capture) {
  for (const auto& stream : all_streams())
    if (stream->capture.get() == &capture) stream->capture.reset();
}

cudaError_t enqueue(cudaStream_t stream, std::function<void()> work) {
  const auto run = [work = std::move(work)] {
    work();
    return true;
  };
  return enqueue_operation(stream, run, false);
}

cudaError_t enqueue_waiting(cudaStream_t stream, std::function<bool()> work) {
  return enqueue_operation(stream, std::move(work), true);
}

cudaError_t enqueue_operation(cudaStream_t handle, Operation work, bool waits) {
  const Call call;
  CUstream_st* stream = find_stream(handle);
  if (stream == nullptr) return report(cudaErrorInvalidResourceHandle);
  if (is_legacy(*stream)) return report(enqueue_legacy(work));
  if (stream->capture) {
    if (stream->capture->invalid) return report(cudaErrorStreamCaptureInvalidated);
    stream->capture->graph->waits |= waits;
    append(*stream, {std::move(work)});
    return cudaSuccess;
  }
  if (waits) {
    static const Progress progress;  // destroyed before the streams
    stream->due = true;
  }
  stream->queue.push_back(std::move(work));
  if (chosen_streams == Streams::eager) drain(*stream);
  return cudaSuccess;
}

}  // namespace emulation

using emulation::Call;
using emulation::report;

namespace {

cudaError_t refuse_to_wait(cudaStream_t handle) {
  const Call call;
  CUstream_st* stream = emulation::find_stream(handle);
  return stream == nullptr ? cudaErrorInvalidResourceHandle : emulation::refuse_on_captured(*stream);
}

// Waits until a stream is idle; false if there is no such stream.
bool finish(cudaStream_t handle) {
  bool known = false;
  emulation::wait_until([&] {
    CUstream_st* stream = emulation::find_stream(handle);
    known = stream != nullptr;
    if (!known) return true;
    return (!emulation::is_legacy(*stream) || emulation::drain_blocking()) && emulation::drain(*stream);
  });
  return known;
}

}  // namespace

cudaError_t cudaStreamCreate(cudaStream_t* stream) { return cudaStreamCreateWithFlags(stream, cudaStreamDefault); }

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int flags, int priority) {
  const Call call;
  auto created = std::make_unique<CUstream_st>();
  created->blocking = (flags & cudaStreamNonBlocking) == 0;
  created->priority = priority;
  *stream = created.get();
  emulation::all_streams().push_back(std::move(created));
  return cudaSuccess;
}

cudaError_t cudaStreamGetPriority(cudaStream_t handle, int* priority) {
  const Call call;
  const CUstream_st* stream = emulation::find_stream(handle);
  if (stream == nullptr) return report(cudaErrorInvalidResourceHandle);
  *priority = stream->priority;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  if (stream == nullptr) return report(cudaErrorInvalidResourceHandle);
  const bool known = finish(stream);
  const Call call;
  if (!known) return report(cudaErrorInvalidResourceHandle);
  if (stream->capture) stream->capture->invalid = true;
  std::erase_if(emulation::all_streams(), [&](const auto& other) { return other.get() == stream; });
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  if (const cudaError_t error = refuse_to_wait(handle); error != cudaSuccess) return report(error);
  finish(handle);
  return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  const Call call;
  if (const cudaError_t error = refuse_to_wait(handle); error != cudaSuccess) return report(error);
  CUstream_st* stream = emulation::find_stream(handle);
  const bool ready = stream->queue.empty();
  emulation::drain(*stream);  // polling makes progress
  return ready ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaDeviceSynchronize() {
  {
    const Call call;
    if (const cudaError_t error = emulation::refuse_while_any_captures(); error != cudaSuccess) return report(error);
  }
  emulation::wait_for_all();
  return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* argument) {
  return emulation::enqueue(stream, [=] { function(argument); });
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  emulation::use_current_device();
  std::swap(*mode, emulation::thread_mode);
  return cudaSuccess;
}
