// The real cuDNN without a GPU: the library gets the description of an H200 instead of a handle, and executions are
// recorded instead of run. The test sets the time of each on the emulated clock. A program defines
// dtrain::cuda::cudnn() as noted::cudnn().
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "libdtrain/cuda/cudnn_graph.h"
#include "libdtrain/cuda/cudnn_library.h"
#include "tests/cuda/h200.h"
#include "tests/emulation/emulation.h"

namespace noted {

using dtrain::cuda::EngineChoice;

// Layer between the engine and the library.
struct Library {
  std::vector<std::string> executed;               // choice of each execution
  std::vector<std::vector<void*>> addresses;       // operands of each execution
  std::function<float(const EngineChoice&)> cost;  // milliseconds; negative: the execution fails
  std::function<float(const EngineChoice&)> host;  // milliseconds of host launch overhead; none: 0
  bool all_compiled = false;                       // all engines claim run-time compilation
  int built = 0;                                   // number of execution plans built
  std::vector<void*> pack;                         // last variant pack

  static Library& get() {
    static Library library;
    return library;
  }
};

inline const dtrain::cuda::Cudnn& real() {
  static const dtrain::cuda::Cudnn library{{"cuDNN", DTRAIN_CUDNN}};
  return library;
}

inline const dtrain::cuda::Descriptor& h200() {
  static const dtrain::cuda::Target target = dtrain::cuda::describe_device(dtrain::cuda::kH200);
  return *target.description;
}

// In place of a handle.
struct Handle {
  cudaStream_t stream = nullptr;
};
inline Handle* behind(cudnnHandle_t handle) { return reinterpret_cast<Handle*>(handle); }

inline cudnnStatus_t create(cudnnHandle_t* handle) {
  *handle = reinterpret_cast<cudnnHandle_t>(new Handle);
  return CUDNN_STATUS_SUCCESS;
}
inline cudnnStatus_t destroy(cudnnHandle_t handle) {
  delete behind(handle);
  return CUDNN_STATUS_SUCCESS;
}
inline cudnnStatus_t set_stream(cudnnHandle_t handle, cudaStream_t stream) {
  behind(handle)->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

inline cudnnStatus_t set_attribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                   cudnnBackendAttributeType_t type, int64_t count, const void* values) {
  if (type == CUDNN_TYPE_HANDLE) return CUDNN_STATUS_SUCCESS;
  if (name == CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG) ++Library::get().built;
  if (name == CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS)
    Library::get().pack.assign(static_cast<void* const*>(values), static_cast<void* const*>(values) + count);
  const cudnnStatus_t status = real().set_attribute(descriptor, name, type, count, values);
  static const std::map<cudnnBackendAttributeName_t, cudnnBackendAttributeName_t> kDevice = {
      {CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP},
      {CUDNN_ATTR_ENGINE_OPERATION_GRAPH, CUDNN_ATTR_ENGINE_DEVICEPROP},
      {CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP}};
  const auto device = kDevice.find(name);
  if (status != CUDNN_STATUS_SUCCESS || device == kDevice.end()) return status;
  const cudnnBackendDescriptor_t description = h200().raw();
  return real().set_attribute(descriptor, device->second, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &description);
}

inline cudnnStatus_t get_attribute(const cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                   cudnnBackendAttributeType_t type, int64_t most, int64_t* count, void* values) {
  if (name != CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE || !Library::get().all_compiled)
    return real().get_attribute(descriptor, name, type, most, count, values);
  *count = 1;
  *static_cast<cudnnBackendBehaviorNote_t*>(values) = CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION;
  return CUDNN_STATUS_SUCCESS;
}

inline cudnnStatus_t execute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t) {
  const dtrain::cuda::Descriptor config(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  cudnnBackendDescriptor_t raw = config.raw();
  int64_t count = 0;
  dtrain::cuda::check(real().get_attribute(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                           1, &count, &raw),
                      "the plan's configuration");
  const EngineChoice choice = dtrain::cuda::choice_of(config);
  Library& library = Library::get();
  const float cost = library.cost ? library.cost(choice) : 1;
  if (cost < 0) return CUDNN_STATUS_EXECUTION_FAILED;
  library.executed.push_back(to_text(choice));
  library.addresses.push_back(library.pack);
  if (library.host) emulation::advance_clock(library.host(choice));
  return emulation::enqueue(behind(handle)->stream, [cost] { emulation::advance_clock(cost); }) == cudaSuccess
             ? CUDNN_STATUS_SUCCESS
             : CUDNN_STATUS_EXECUTION_FAILED;
}

inline const dtrain::cuda::Cudnn& cudnn() {
  static const dtrain::cuda::Cudnn functions = [] {
    dtrain::cuda::Cudnn made = real();
    made.create = create;
    made.destroy = destroy;
    made.set_stream = set_stream;
    made.set_attribute = set_attribute;
    made.get_attribute = get_attribute;
    made.execute = execute;
    return made;
  }();
  return functions;
}

}  // namespace noted
