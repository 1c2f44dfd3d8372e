// Runtime: streams, device properties and library handles of a CUDA context.
#pragma once

#include <map>
#include <memory>
#include <typeindex>

#include "dtrain/core/context.h"
#include "libdtrain/cuda/cuda.h"

namespace dtrain::cuda {

class ConvPlans;
class MatmulPlans;

class Runtime {
 public:
  explicit Runtime(const CudaOptions& options);
  ~Runtime();

  // `compute`: kernels of a step; `copy`: uploads of batches; `communication`: collectives.
  cudaStream_t compute() const { return in_body_ ? body_.get() : compute_.get(); }
  cudaStream_t copy() const { return copy_.get(); }
  cudaStream_t communication() const { return communication_.get(); }

  // Stream on which bodies of conditional nodes are captured. It takes the place of compute() during the capture, so
  // compute() must not be cached.
  cudaStream_t body_stream() const { return body_.get(); }
  void capture_body(bool aside) { in_body_ = aside; }
  bool in_body() const { return in_body_; }

  const CudaOptions& options() const { return options_; }
  int multiprocessors() const { return properties_.multiProcessorCount; }
  const cudaDeviceProp& properties() const { return properties_; }
  // Multiprocessors that collectives on the communication stream may occupy while they wait for peers. Cooperative
  // kernels, whose blocks all wait for each other, leave them free.
  int held_by_collectives() const { return held_by_collectives_; }
  void hold_for_collectives(int multiprocessors) { held_by_collectives_ = multiprocessors; }

  // cuDNN and cuBLASLt handles with their plan caches, created at first use.
  ConvPlans& conv_plans();
  MatmulPlans& matmul_plans();
  // Per-context state of an op, e.g. its autotuning results: one object per type, created at first use.
  template <class State>
  State& op_state() {
    std::shared_ptr<void>& state = op_states_[typeid(State)];
    if (!state) state = std::make_shared<State>();
    return *static_cast<State*>(state.get());
  }

 private:
  CudaOptions options_;
  cudaDeviceProp properties_{};
  CudaStream compute_, copy_, communication_, body_;
  bool in_body_ = false;
  int held_by_collectives_ = 0;
  std::shared_ptr<ConvPlans> conv_plans_;
  std::shared_ptr<MatmulPlans> matmul_plans_;
  std::map<std::type_index, std::shared_ptr<void>> op_states_;
};

}  // namespace dtrain::cuda
