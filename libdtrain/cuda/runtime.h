// Runtime: what a CUDA context holds beside its memory: streams, the properties of its device, library handles.
#pragma once

#include <map>
#include <memory>
#include <typeindex>

#include "libdtrain/core/context.h"
#include "libdtrain/cuda/cuda.h"

namespace dtrain::cuda {

class ConvPlans;
class MatmulPlans;

class Runtime {
 public:
  explicit Runtime(const CudaOptions& options);
  ~Runtime();

  // Kernels of a step run on `compute`, host copies of batches on `copy`, collectives on `communication`.
  cudaStream_t compute() const { return in_body_ ? body_.get() : compute_.get(); }
  cudaStream_t copy() const { return copy_.get(); }
  cudaStream_t communication() const { return communication_.get(); }

  // What a captured step may leave out is captured on a stream of its own, which takes the place of `compute` for a
  // while: so nobody keeps that.
  cudaStream_t body_stream() const { return body_.get(); }
  void capture_body(bool aside) { in_body_ = aside; }
  bool in_body() const { return in_body_; }

  const CudaOptions& options() const { return options_; }
  int multiprocessors() const { return properties_.multiProcessorCount; }
  const cudaDeviceProp& properties() const { return properties_; }
  // Multiprocessors that collectives beside the compute stream may hold for as long as their peers keep them waiting.
  // What waits for all of its blocks at once leaves them alone.
  int held_by_collectives() const { return held_by_collectives_; }
  void hold_for_collectives(int multiprocessors) { held_by_collectives_ = multiprocessors; }

  // cuDNN's and cuBLASLt's handles with the algorithms chosen so far, made at first use.
  ConvPlans& conv_plans();
  MatmulPlans& matmul_plans();
  // What an op keeps for the length of the context, e.g. what it has measured: one of each type, made at first use.
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
