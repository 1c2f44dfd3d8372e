#include <algorithm>

#include "tests/emulation/emulation.h"
#include "tests/emulation/runtime.h"

using emulation::Call;
using emulation::Record;
using emulation::report;

namespace {

std::optional<std::chrono::steady_clock::time_point> own_clock;

// Completed, and not recorded by a capture.
cudaError_t status_of(const CUevent_st& event) {
  if (event.capture) return cudaErrorCapturedEvent;
  return !event.record || event.record->done ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t wait_captured(CUstream_st& stream, const CUevent_st& event) {
  if (!event.capture) return stream.capture && event.record ? cudaErrorStreamCaptureIsolation : cudaSuccess;
  if (event.capture->graph == nullptr) return cudaErrorCapturedEvent;  // the capture has ended
  if (event.capture->invalid) return cudaErrorStreamCaptureInvalidated;
  if (stream.capture && stream.capture != event.capture) return cudaErrorStreamCaptureMerge;
  if (!stream.capture) stream.after.clear();
  stream.capture = event.capture;
  for (const auto& [other, count] : event.after) stream.after[other] = std::max(stream.after[other], count);
  stream.last = nullptr;
  return cudaSuccess;
}

}  // namespace

void emulation::stop_clock() {
  const Call call;
  own_clock.emplace();
}

void emulation::advance_clock(double milliseconds) {
  const Call call;
  *own_clock += std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double, std::milli>(milliseconds));
}

std::shared_ptr<Record> emulation::begin_record(CUevent_st& event, cudaStream_t stream) {
  event.capture.reset();
  event.record = std::make_shared<Record>(Record{stream});
  return event.record;
}

void emulation::complete(Record& record) {
  record.time = own_clock ? *own_clock : std::chrono::steady_clock::now();
  record.done = true;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags) {
  *event = new CUevent_st{(flags & cudaEventDisableTiming) == 0, nullptr, nullptr, {}};
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t handle) {
  const Call call;
  CUstream_st* stream = emulation::find_stream(handle);
  if (stream == nullptr) return report(cudaErrorInvalidResourceHandle);
  if (stream->capture) {
    if (stream->capture->invalid) return report(cudaErrorStreamCaptureInvalidated);
    event->record.reset();
    event->capture = stream->capture;
    event->after = stream->after;
    return cudaSuccess;
  }
  return emulation::enqueue(handle, [record = emulation::begin_record(*event, stream)] { complete(*record); });
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t handle, unsigned int flags) {
  if (flags == cudaEventRecordDefault) return cudaEventRecord(event, handle);
  const Call call;
  CUstream_st* stream = emulation::find_stream(handle);
  if (stream == nullptr) return report(cudaErrorInvalidResourceHandle);
  if (flags != cudaEventRecordExternal || !stream->capture) return report(cudaErrorInvalidValue);
  if (stream->capture->invalid) return report(cudaErrorStreamCaptureInvalidated);
  emulation::append(*stream, {nullptr, event});
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned int) {
  const Call call;
  CUstream_st* stream = emulation::find_stream(handle);
  if (stream == nullptr) return report(cudaErrorInvalidResourceHandle);
  if (stream->capture || event->capture) {
    const cudaError_t error = wait_captured(*stream, *event);
    if (error != cudaSuccess && stream->capture) stream->capture->invalid = true;
    return report(error);
  }
  if (!event->record || event->record->done) return cudaSuccess;
  return emulation::enqueue_operation(
      handle, [record = event->record] { return emulation::run_towards(*record); }, false);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  std::shared_ptr<const Record> record;
  {
    const Call call;
    if (event->capture) return report(cudaErrorCapturedEvent);
    if (const cudaError_t error = emulation::refuse_while_capturing(); error != cudaSuccess) return report(error);
    record = event->record;
  }
  if (record) emulation::wait_until([&] { return emulation::run_towards(*record); });
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  const Call call;
  if (const cudaError_t error = emulation::refuse_while_capturing(); error != cudaSuccess) return report(error);
  const cudaError_t status = status_of(*event);
  if (status == cudaErrorNotReady) emulation::run_towards(*event->record);  // polling makes progress
  return status == cudaErrorCapturedEvent ? report(status) : status;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  const Call call;
  for (const CUevent_st* event : {start, end}) {
    if (!event->timed || (!event->record && !event->capture)) return report(cudaErrorInvalidResourceHandle);
    if (const cudaError_t status = status_of(*event); status != cudaSuccess) return report(status);
  }
  *milliseconds = std::chrono::duration<float, std::milli>(end->record->time - start->record->time).count();
  return cudaSuccess;
}
