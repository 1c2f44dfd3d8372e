#include "libdtrain/cuda/cudnn_graph.h"

#include <algorithm>

#include "libdtrain/core/error.h"
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

// What is made for a device, and may be for one that is described instead of there.
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
  throw Error(concat("cuDNN ", CUDNN_VERSION, " takes no description of a device; 9.8 does"));
#endif
}

namespace {

cudnnDataType_t data_type(int64_t dtype) {
  switch (static_cast<DType>(dtype)) {
    case DType::f32:
      return CUDNN_DATA_FLOAT;
    case DType::bf16:
      return CUDNN_DATA_BFLOAT16;
    case DType::f16:
      return CUDNN_DATA_HALF;
    default:
      throw Error(concat("a convolution of ", static_cast<DType>(dtype), ", expected f32, bf16 or f16"));
  }
}

Descriptor tensor(TensorId id, const TensorLayout& layout, cudnnDataType_t type, int64_t alignment) {
  Descriptor made(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  made.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, static_cast<int64_t>(id))
      .set(CUDNN_ATTR_TENSOR_DATA_TYPE, type)
      .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, alignment)
      .set(CUDNN_ATTR_TENSOR_DIMENSIONS, std::span(layout.extents))
      .set(CUDNN_ATTR_TENSOR_STRIDES, std::span(layout.strides));
  if (id == TensorId::virtual_result) made.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, true);
  return made.finalize();
}

Descriptor convolution(const ConvProblem& o) {
  const std::array<int64_t, 2> before{o.pad_top, o.pad_left}, after{o.pad_bottom, o.pad_right};
  const std::array<int64_t, 2> stride{o.stride_h, o.stride_w}, dilation{o.dilation_h, o.dilation_w};
  Descriptor made(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  return made.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT)
      .set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION)
      .set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, int64_t{2})
      .set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, std::span(before))
      .set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, std::span(after))
      .set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, std::span(stride))
      .set(CUDNN_ATTR_CONVOLUTION_DILATIONS, std::span(dilation))
      .finalize();
}

// The attributes of the three operations, which differ by name only.
struct OperationNames {
  cudnnBackendDescriptorType_t operation;
  cudnnBackendAttributeName_t alpha, beta, convolution, image, filter, output;
};
const OperationNames& names_of(ConvKind kind) {
  static constexpr OperationNames kForward{CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                                           CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                                           CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
                                           CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                                           CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                                           CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                                           CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y};
  static constexpr OperationNames kDgrad{CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
                                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY};
  static constexpr OperationNames kWgrad{CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
                                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY};
  if (kind == ConvKind::wgrad) return kWgrad;
  return kind == ConvKind::dgrad || kind == ConvKind::dgrad_add ? kDgrad : kForward;
}

// result = virtual_result + extra, in f32
Descriptor addition(const Descriptor& from, const Descriptor& extra, const Descriptor& result) {
  Descriptor how(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  how.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_POINTWISE_ADD).set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT);
  Descriptor made(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  return made.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how.finalize())
      .set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, from)
      .set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, extra)
      .set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, result)
      .finalize();
}

Descriptor statistics(const Descriptor& y, int64_t channels, int64_t alignment) {
  const TensorLayout layout = channels_last(1, channels, 1, 1);
  Descriptor made(CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR);
  return made.set(CUDNN_ATTR_OPERATION_GENSTATS_MODE, CUDNN_GENSTATS_SUM_SQSUM)
      .set(CUDNN_ATTR_OPERATION_GENSTATS_MATH_PREC, CUDNN_DATA_FLOAT)
      .set(CUDNN_ATTR_OPERATION_GENSTATS_XDESC, y)
      .set(CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC, tensor(TensorId::sum, layout, CUDNN_DATA_FLOAT, alignment))
      .set(CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC,
           tensor(TensorId::sum_of_squares, layout, CUDNN_DATA_FLOAT, alignment))
      .finalize();
}

}  // namespace

Descriptor conv_graph(const ConvProblem& o, const Target& target) {
  const cudnnDataType_t type = data_type(o.dtype), result_type = data_type(o.output_dtype);
  const OperationNames& names = names_of(o.kind);
  const bool dgrad = names.image == CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, wgrad = o.kind == ConvKind::wgrad;
  const TensorLayout result_layout = dgrad ? image_layout(o) : wgrad ? filter_layout(o) : output_layout(o);
  const TensorId result_id = dgrad ? TensorId::image : wgrad ? TensorId::filter : TensorId::output;
  const Descriptor result = tensor(result_id, result_layout, result_type, o.alignment);
  const bool adds = o.kind == ConvKind::forward_bias || o.kind == ConvKind::dgrad_add;
  const Descriptor of_conv =
      adds ? tensor(TensorId::virtual_result, result_layout, CUDNN_DATA_FLOAT, o.alignment) : result;

  Descriptor operation(names.operation);
  operation.set(names.alpha, 1.0f).set(names.beta, 0.0f).set(names.convolution, convolution(o));
  operation.set(names.image, dgrad ? of_conv : tensor(TensorId::image, image_layout(o), type, o.alignment));
  operation.set(names.filter, wgrad ? of_conv : tensor(TensorId::filter, filter_layout(o), type, o.alignment));
  operation.set(names.output, dgrad || wgrad ? tensor(TensorId::output, output_layout(o), type, o.alignment) : of_conv);
  std::vector<Descriptor> operations{operation.finalize()};
  if (o.kind == ConvKind::forward_bias)
    operations.push_back(
        addition(of_conv, tensor(TensorId::extra, channels_last(1, o.k, 1, 1), CUDNN_DATA_FLOAT, o.alignment), result));
  if (o.kind == ConvKind::dgrad_add)
    operations.push_back(addition(of_conv, tensor(TensorId::extra, result_layout, result_type, o.alignment), result));
  if (o.kind == ConvKind::forward_statistics) operations.push_back(statistics(result, o.k, o.alignment));
  Descriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  if (target.handle) graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, target.handle);
  return graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, std::span<const Descriptor>(operations)).finalize();
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
      case CUDNN_NUMERICAL_NOTE_TENSOR_CORE:  // which take f32 as TF32
      case CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS:
        return f32 && problem.tf32 == 0;
      case CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION:
        return true;
      case CUDNN_NUMERICAL_NOTE_FFT:  // what is transformed would be rounded to 16 bits
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
