#include "libdtrain/cuda/cudnn_graph.h"

#include <algorithm>

#include "dtrain/core/error.h"
#include "libdtrain/cuda/cudnn_library.h"

namespace dtrain::cuda {

void check(cudnnStatus_t status, const char* call) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  char reason[1024] = "";
  cudnn().get_last_error_string(reason, sizeof reason);
  throw Error(Fault::resource, concat(call, ": ", cudnn().get_error_string(status), *reason ? ": " : "", reason));
}

Descriptor::Descriptor(cudnnBackendDescriptorType_t type) {
  cudnnBackendDescriptor_t made = nullptr;
  check(cudnn().create_descriptor(type, &made), "cudnnBackendCreateDescriptor");
  descriptor_ = std::shared_ptr<void>(made, [](void* raw) { static_cast<void>(cudnn().destroy_descriptor(raw)); });
}

void Descriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                     const void* values) {
  check(cudnn().set_attribute(raw(), name, type, count, values), "cudnnBackendSetAttribute");
}
int64_t Descriptor::get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t most,
                        void* values) const {
  int64_t count = 0;
  check(cudnn().get_attribute(raw(), name, type, most, &count, values), "cudnnBackendGetAttribute");
  return std::min(count, most);
}

Descriptor& Descriptor::set(cudnnBackendAttributeName_t name, const Descriptor& value) {
  return set(name, std::span(&value, 1));
}
Descriptor& Descriptor::set(cudnnBackendAttributeName_t name, std::span<const Descriptor> values) {
  std::vector<cudnnBackendDescriptor_t> raws;
  for (const Descriptor& value : values) raws.push_back(value.raw());
  set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<int64_t>(raws.size()), raws.data());
  return *this;
}
Descriptor& Descriptor::finalize() {
  check(cudnn().finalize(raw()), "cudnnBackendFinalize");
  return *this;
}
bool Descriptor::try_finalize() { return cudnn().finalize(raw()) == CUDNN_STATUS_SUCCESS; }

int64_t Descriptor::count(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type) const {
  int64_t count = 0;
  check(cudnn().get_attribute(raw(), name, type, 0, &count, nullptr), "cudnnBackendGetAttribute");
  return count;
}
std::vector<Descriptor> Descriptor::get_descriptors(cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type,
                                                    size_t most) const {
  std::vector<Descriptor> values;
  std::vector<cudnnBackendDescriptor_t> raws;
  for (size_t i = 0; i < most; ++i) raws.push_back(values.emplace_back(type).raw());
  const int64_t count = get(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<int64_t>(most), raws.data());
  values.erase(values.begin() + count, values.end());
  return values;
}
Descriptor Descriptor::get_descriptor(cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type) const {
  return get_descriptors(name, type, 1).at(0);
}

namespace {

// Descriptors that depend on the device, which may be absent and only described.
enum class Part { heuristic, engine, plan };

#if CUDNN_VERSION >= 90800
void aim(Descriptor& descriptor, Part part, const Target& target) {
  if (!target.description) return;
  descriptor.set(part == Part::heuristic ? CUDNN_ATTR_ENGINEHEUR_DEVICEPROP
                 : part == Part::engine  ? CUDNN_ATTR_ENGINE_DEVICEPROP
                                         : CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP,
                 *target.description);
}
#else
void aim(Descriptor&, Part, const Target&) {}
#endif

}  // namespace

Target describe_device([[maybe_unused]] const std::string& json) {
#if CUDNN_VERSION >= 90800
  Target target{nullptr, Descriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR)};
  target.description->set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, std::span<const char>(json)).finalize();
  return target;
#else
  throw Error(concat("cuDNN ", CUDNN_VERSION, " does not support device descriptions; 9.8 or later is needed"));
#endif
}

std::vector<Descriptor> engine_configs(const Descriptor& graph, cudnnBackendHeurMode_t mode, const Target& target) {
  Descriptor heuristic(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph).set(CUDNN_ATTR_ENGINEHEUR_MODE, mode);
  aim(heuristic, Part::heuristic, target);
  if (!heuristic.try_finalize()) return {};
  const int64_t most = heuristic.count(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR);
  return heuristic.get_descriptors(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR,
                                   static_cast<size_t>(most));
}

EngineChoice choice_of(const Descriptor& config) {
  const Descriptor engine = config.get_descriptor(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  EngineChoice choice{engine.get<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX), {}};
  for (const Descriptor& knob : config.get_descriptors(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                                                       CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, CUDNN_KNOB_TYPE_COUNTS))
    choice.knobs.emplace_back(knob.get<cudnnBackendKnobType_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE),
                              knob.get<int64_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE));
  std::sort(choice.knobs.begin(), choice.knobs.end());
  return choice;
}

bool allowed(const ConvProblem& problem, const Descriptor& config) {
  const Descriptor engine = config.get_descriptor(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  const auto notes =
      engine.get_all<cudnnBackendNumericalNote_t>(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  const bool f32 = problem.dtype == static_cast<int64_t>(DType::f32);
  return std::none_of(notes.begin(), notes.end(), [&](cudnnBackendNumericalNote_t note) {
    switch (note) {
      case CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC:
        return problem.deterministic != 0;
      case CUDNN_NUMERICAL_NOTE_TENSOR_CORE:  // rounds f32 inputs to TF32
      case CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS:
        return f32 && problem.tf32 == 0;
      case CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION:
        return true;
      case CUDNN_NUMERICAL_NOTE_FFT:  // may round transformed values to 16 bits
      case CUDNN_NUMERICAL_NOTE_WINOGRAD:
        return !f32;
      default:
        return false;
    }
  });
}

bool compiled_at_run_time(const Descriptor& config) {
  const Descriptor engine = config.get_descriptor(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  const auto notes =
      engine.get_all<cudnnBackendBehaviorNote_t>(CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_BEHAVIOR_NOTE_TYPE_COUNT);
  return std::find(notes.begin(), notes.end(), CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION) != notes.end();
}

Descriptor config_of(const Descriptor& graph, const EngineChoice& choice, const Target& target) {
  Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  engine.set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph).set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, choice.engine);
  aim(engine, Part::engine, target);
  Descriptor config(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  config.set(CUDNN_ATTR_ENGINECFG_ENGINE, engine.finalize());
  std::vector<Descriptor> knobs;
  for (const auto& [type, value] : choice.knobs)
    knobs.push_back(Descriptor(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR)
                        .set(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, static_cast<cudnnBackendKnobType_t>(type))
                        .set(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, value)
                        .finalize());
  if (!knobs.empty()) config.set(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, std::span<const Descriptor>(knobs));
  return config.finalize();
}

std::optional<Descriptor> build_plan(const Descriptor& config, const Target& target) {
  Descriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  if (target.handle) plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, target.handle);
  plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
  aim(plan, Part::plan, target);
  return plan.try_finalize() ? std::optional(plan) : std::nullopt;
}

int64_t workspace_of(const Descriptor& plan) { return plan.get<int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE); }

}  // namespace dtrain::cuda
