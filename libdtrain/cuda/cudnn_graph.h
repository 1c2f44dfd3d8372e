// cuDNN's graph API: owned backend descriptors, a convolution as an operation graph, and the engines that support it.
// Only a Target with a handle needs a GPU: engines of another device are queried by its description.
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

// Throws Error(Fault::resource), naming the call and cuDNN's explanation, unless `status` is success.
void check(cudnnStatus_t status, const char* call);

// Attribute type of a C++ type.
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

// Reference-counted cuDNN backend descriptor.
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
  // As finalize(), but returns false where cuDNN does not support the descriptor.
  bool try_finalize();

  template <class T>
  T get(cudnnBackendAttributeName_t name) const {
    T value{};
    get(name, kAttributeType<T>, 1, &value);
    return value;
  }
  // At most `most` values.
  template <class T>
  std::vector<T> get_all(cudnnBackendAttributeName_t name, size_t most) const {
    std::vector<T> values(most);
    values.resize(static_cast<size_t>(get(name, kAttributeType<T>, static_cast<int64_t>(most), values.data())));
    return values;
  }
  Descriptor get_descriptor(cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type) const;
  std::vector<Descriptor> get_descriptors(cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type,
                                          size_t most) const;
  // Number of elements of an attribute.
  int64_t count(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type) const;

  cudnnBackendDescriptor_t raw() const { return descriptor_.get(); }

 private:
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count, const void* values);
  int64_t get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t most, void* values) const;

  std::shared_ptr<void> descriptor_;
};

// Device that engines are selected and built for: a handle, or the description of a device that is absent.
struct Target {
  cudnnHandle_t handle = nullptr;
  std::optional<Descriptor> description{};
};
// Device from the JSON that cuDNN 9.8 or later writes about it. Throws where it cannot be parsed.
Target describe_device(const std::string& json);

// UIDs of a graph's tensors in the variant pack.
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
  first_within,  // virtual tensors have UIDs from here on
};

// Operation graph of a problem. ConvOperands lists the shapes and types of its tensors.
Descriptor conv_graph(const ConvProblem& problem, const Target& target);

// Engine configurations from a heuristic, best first; empty where the graph is unsupported.
std::vector<Descriptor> engine_configs(const Descriptor& graph, cudnnBackendHeurMode_t mode, const Target& target);
EngineChoice choice_of(const Descriptor& config);
// Whether the numerics of a configuration are allowed for the problem.
bool allowed(const ConvProblem& problem, const Descriptor& config);
// Whether building the plan compiles code at run time, which is slow.
bool compiled_at_run_time(const Descriptor& config);
// Configuration of a stored choice. Throws where this cuDNN has no such engine or knob.
Descriptor config_of(const Descriptor& graph, const EngineChoice& choice, const Target& target);

// Execution plan of a configuration; nullopt where cuDNN declines it.
std::optional<Descriptor> build_plan(const Descriptor& config, const Target& target);
int64_t workspace_of(const Descriptor& plan);

}  // namespace dtrain::cuda
