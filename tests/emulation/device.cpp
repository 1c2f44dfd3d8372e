#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>

#include "tests/emulation/emulation.h"
#include "tests/emulation/executor.h"
#include "tests/emulation/runtime.h"

namespace emulation {
namespace {

thread_local cudaError_t last_error = cudaSuccess;
thread_local int current_device = 0;
int device_count = 1;

struct Contexts {
  std::mutex mutex;
  std::set<int> devices;
};
Contexts& new_contexts() {
  static Contexts contexts;
  return contexts;
}

bool is_device(int device) { return 0 <= device && device < device_count; }

cudaDeviceProp describe() {
  cudaDeviceProp device{};
  std::snprintf(device.name, sizeof device.name, "emulated");
  const pid_t process = getpid();  // each process has its own device
  std::memcpy(device.uuid.bytes, &process, sizeof process);
  device.pciDomainID = process >> 8 & 0xffff;
  device.pciBusID = process & 0xff;
  size_t free = 0;
  static_cast<void>(cudaMemGetInfo(&free, &device.totalGlobalMem));
  device.sharedMemPerBlock = kSharedBytes;
  device.sharedMemPerBlockOptin = kMostSharedBytes;
  device.sharedMemPerMultiprocessor = kSharedPerMultiprocessor;
  device.regsPerBlock = 65536;
  device.warpSize = kWarpLanes;
  device.maxThreadsPerBlock = kMostThreadsPerBlock;
  for (int i = 0; i < 3; ++i) {
    device.maxThreadsDim[i] = static_cast<int>(kMostThreadsPerAxis[i]);
    device.maxGridSize[i] = static_cast<int>(kMostBlocksPerAxis[i]);
  }
  device.major = 9;
  device.multiProcessorCount = kMultiprocessors;
  device.maxThreadsPerMultiProcessor = kMostThreadsPerMultiprocessor;
  device.maxBlocksPerMultiProcessor = kMostBlocksPerMultiprocessor;
  device.l2CacheSize = 1 << 20;
  device.cooperativeLaunch = 1;
  device.asyncEngineCount = 1;
  device.concurrentKernels = 1;
  return device;
}

struct ErrorText {
  cudaError_t error;
  const char *name, *text;
};
constexpr ErrorText kErrors[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration", "invalid extents of a launch"},
    {cudaErrorInvalidMemcpyDirection, "cudaErrorInvalidMemcpyDirection", "no such direction of a copy"},
    {cudaErrorInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction", "not a kernel"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no device"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "no such device"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "the handle is of nothing fit for the call"},
    {cudaErrorIllegalState, "cudaErrorIllegalState", "not in a state that allows the call"},
    {cudaErrorNotReady, "cudaErrorNotReady", "not done yet"},
    {cudaErrorCooperativeLaunchTooLarge, "cudaErrorCooperativeLaunchTooLarge",
     "more blocks in a cooperative launch than can run at once"},
    {cudaErrorNotSupported, "cudaErrorNotSupported", "not in the emulation"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported", "not allowed while a stream is captured"},
    {cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
     "an earlier error has made the capture invalid"},
    {cudaErrorStreamCaptureMerge, "cudaErrorStreamCaptureMerge", "two captures would become one"},
    {cudaErrorStreamCaptureUnmatched, "cudaErrorStreamCaptureUnmatched", "the capture did not begin on this stream"},
    {cudaErrorStreamCaptureUnjoined, "cudaErrorStreamCaptureUnjoined",
     "the capture ends before a stream that joined it was waited for"},
    {cudaErrorStreamCaptureIsolation, "cudaErrorStreamCaptureIsolation",
     "the capture would wait for an event from outside"},
    {cudaErrorStreamCaptureImplicit, "cudaErrorStreamCaptureImplicit",
     "the legacy stream would wait for a stream that is captured"},
    {cudaErrorCapturedEvent, "cudaErrorCapturedEvent", "the event was last recorded while captured"},
    {cudaErrorStreamCaptureWrongThread, "cudaErrorStreamCaptureWrongThread", "another thread began the capture"},
};

const ErrorText& describe(cudaError_t error) {
  static constexpr ErrorText kUnknown{cudaSuccess, "unknown", "an error that the emulation does not know"};
  for (const ErrorText& known : kErrors)
    if (known.error == error) return known;
  return kUnknown;
}

}  // namespace

void set_device_count(int count) { device_count = count; }

std::set<int> new_device_contexts() {
  const std::lock_guard lock(new_contexts().mutex);
  return std::exchange(new_contexts().devices, {});
}

void use_current_device() {
  const std::lock_guard lock(new_contexts().mutex);
  new_contexts().devices.insert(current_device);
}

cudaError_t report(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

}  // namespace emulation

using emulation::report;

const char* cudaGetErrorName(cudaError_t error) { return emulation::describe(error).name; }
const char* cudaGetErrorString(cudaError_t error) { return emulation::describe(error).text; }

cudaError_t cudaGetLastError() {
  const cudaError_t error = emulation::last_error;
  emulation::last_error = cudaSuccess;
  return error;
}
cudaError_t cudaPeekAtLastError() { return emulation::last_error; }

// As the driver: an empty list hides all devices.
cudaError_t cudaGetDeviceCount(int* count) {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  *count = visible != nullptr && *visible == '\0' ? 0 : emulation::device_count;
  return *count > 0 ? cudaSuccess : report(cudaErrorNoDevice);
}
cudaError_t cudaSetDevice(int device) {
  if (!emulation::is_device(device)) return report(cudaErrorInvalidDevice);
  emulation::current_device = device;
  emulation::use_current_device();
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = emulation::current_device;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (!emulation::is_device(device)) return report(cudaErrorInvalidDevice);
  *properties = emulation::describe();
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (!emulation::is_device(device)) return report(cudaErrorInvalidDevice);
  const cudaDeviceProp properties = emulation::describe();
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
      *value = properties.maxThreadsPerBlock;
      break;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      *value = static_cast<int>(properties.sharedMemPerBlock);
      break;
    case cudaDevAttrWarpSize:
      *value = properties.warpSize;
      break;
    case cudaDevAttrMultiProcessorCount:
      *value = properties.multiProcessorCount;
      break;
    case cudaDevAttrMemoryClockRate:  // unknown
    case cudaDevAttrGlobalMemoryBusWidth:
      *value = 0;
      break;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      *value = properties.maxThreadsPerMultiProcessor;
      break;
    case cudaDevAttrComputeCapabilityMajor:
      *value = properties.major;
      break;
    case cudaDevAttrComputeCapabilityMinor:
      *value = properties.minor;
      break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      *value = static_cast<int>(properties.sharedMemPerMultiprocessor);
      break;
    case cudaDevAttrCooperativeLaunch:
      *value = properties.cooperativeLaunch;
      break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = static_cast<int>(properties.sharedMemPerBlockOptin);
      break;
    default:
      return report(cudaErrorNotSupported);
  }
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  if (!emulation::is_device(device)) return report(cudaErrorInvalidDevice);
  const cudaDeviceProp properties = emulation::describe();
  std::snprintf(text, static_cast<size_t>(length), "%04x:%02x:00.0", properties.pciDomainID, properties.pciBusID);
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) { return cudaRuntimeGetVersion(version); }
