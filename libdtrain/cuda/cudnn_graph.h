// cuDNN's graph interface: owned descriptors, a convolution as an operation graph, and the engines that can run it.
// Nothing here needs a GPU but a Target that holds a handle: engines for a device may be asked for by its description.
#pragma once

#include <cudnn_graph.h>

#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "libdtrain/cuda/conv_problem.h"

namespace dtrain::cuda {

// Throws for a status other than success: Fault::resource, naming the call, with cuDNN's own explanation.
void check(cudnnStatus_t status, const char* call);

// The attribute type that goes with a C++ type.
template <class T>
inline constexpr cudnnBackendAttributeType_t kAttributeType = T::is_no_type_of_an_attribute;
template <>
inline constexpr cudnnBackendAttributeType_t kAttributeType<int64_t> = CUDNN_TYPE_INT64;
template <>
inline constexpr cudnnBackendAttributeType_t kAttributeType<float> = CUDNN_TYPE_FLOAT;
template <>
inline constexpr cudnnBackendAttributeType_t kAttributeType<bool> = CUDNN_TYPE_BOOLEAN;
template <>
inline constexpr cudnnBackendAttributeType_t kAttributeType<char> = CUDNN_TYPE_CHAR;
template <>
inline constexpr cudnnBackendAttributeType_t kAttributeType<void*> = CUDNN_TYPE_VOID_PTR;
template <>
inline constexpr cudnnBackendAttributeType_t kAttributeType<cudnnHandle_t> = CUDNN_TYPE_HANDLE;
template <>
inline constexpr cudnnBackendAttributeType_t kAttributeType<cudnnDataType_t> = CUDNN_TYPE_DATA_TYPE;
template <>
inline constexpr cudnnBackendAttributeType_t kAttributeType<cudnnConvolutionMode_t> = CUDNN_TYPE_CONVOLUTION_MODE;
template <>
inline constexpr cudnnBackendAttributeType_t kAttributeType<cudnnPointwiseMode_t> = CUDNN_TYPE_POINTWISE_MODE;
template <>
inline constexpr cudnnBackendAttributeType_t kAttributeType<cudnnGenStatsMode_t> = CUDNN_TYPE_GENSTATS_MODE;
template <>
inline constexpr cudnnBackendAttributeType_t kAttributeType<cudnnBackendHeurMode_t> = CUDNN_TYPE_HEUR_MODE;
template <>
inline constexpr cudnnBackendAttributeType_t kAttributeType<cudnnBackendKnobType_t> = CUDNN_TYPE_KNOB_TYPE;
template <>
inline constexpr cudnnBackendAttributeType_t kAttributeType<cudnnBackendNumericalNote_t> = CUDNN_TYPE_NUMERICAL_NOTE;
template <>
inline constexpr cudnnBackendAttributeType_t kAttributeType<cudnnBackendBehaviorNote_t> = CUDNN_TYPE_BEHAVIOR_NOTE;

// A descriptor of cuDNN's backend; a copy refers to the same one.
class Descriptor {
 public:
  explicit Descriptor(cudnnBackendDescriptorType_t type);

  template <class T, size_t extent>
  Descriptor& set(cudnnBackendAttributeName_t name, std::span<T, extent> values) {
    set(name, kAttributeType<std::remove_const_t<T>>, static_cast<int64_t>(values.size()), values.data());
    return *this;
  }
  template <class T>
  Descriptor& set(cudnnBackendAttributeName_t name, const T& value) {
    return set(name, std::span(&value, 1));
  }
  Descriptor& set(cudnnBackendAttributeName_t name, const Descriptor& value);
  Descriptor& set(cudnnBackendAttributeName_t name, std::span<const Descriptor> values);
  Descriptor& finalize();
  // As finalize(), but false where cuDNN does not support what was asked for.
  bool try_finalize();

  template <class T>
  T get(cudnnBackendAttributeName_t name) const {
    T value{};
    get(name, kAttributeType<T>, 1, &value);
    return value;
  }
  // At most `most`.
  template <class T>
  std::vector<T> get_all(cudnnBackendAttributeName_t name, size_t most) const {
    std::vector<T> values(most);
    values.resize(static_cast<size_t>(get(name, kAttributeType<T>, static_cast<int64_t>(most), values.data())));
    return values;
  }
  Descriptor get_descriptor(cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type) const;
  std::vector<Descriptor> get_descriptors(cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type,
                                          size_t most) const;
  // How many elements an attribute has.
  int64_t count(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type) const;

  cudnnBackendDescriptor_t raw() const { return descriptor_.get(); }

 private:
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count, const void* values);
  int64_t get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t most, void* values) const;

  std::shared_ptr<void> descriptor_;
};

// The device that engines are chosen and built for: by a handle on it, or by a description of one that is elsewhere.
struct Target {
  cudnnHandle_t handle = nullptr;
  std::optional<Descriptor> description{};
};
// A device from the JSON that cuDNN, from 9.8 on, writes of it. Throws where it cannot be read.
Target describe_device(const std::string& json);

// The names of a graph's tensors in the variant pack.
enum class TensorId : int64_t {
  image = 1,
  filter,
  output,
  extra,
  sum,
  sum_of_squares,
  scale,
  shift,
  mean,
  inv_std,
  gamma,
  beta,
  dgamma,
  dbeta,
  term_dy,
  term_x,
  term,
  first_within,  // what stays within the graph has this number and later ones
};

// The operation graph of a problem. ConvOperands has the shapes and types of its tensors.
Descriptor conv_graph(const ConvProblem& problem, const Target& target);

// The configurations that a heuristic proposes, the best first; none where the graph is not supported.
std::vector<Descriptor> engine_configs(const Descriptor& graph, cudnnBackendHeurMode_t mode, const Target& target);
EngineChoice choice_of(const Descriptor& config);
// Whether the arithmetic of a configuration is what the problem allows.
bool allowed(const ConvProblem& problem, const Descriptor& config);
// Whether a configuration's code is made when its plan is built, which takes its time.
bool compiled_at_run_time(const Descriptor& config);
// The configuration of a choice made earlier; throws where this cuDNN has no such engine or setting.
Descriptor config_of(const Descriptor& graph, const EngineChoice& choice, const Target& target);

// A configuration made ready to run; none where cuDNN declines it.
std::optional<Descriptor> build_plan(const Descriptor& config, const Target& target);
int64_t workspace_of(const Descriptor& plan);

}  // namespace dtrain::cuda
