// Runtime: what a CUDA context holds beside its memory: streams, the properties of its device, library handles.
#pragma once

#include <memory>

#include "libdtrain/core/context.h"
#include "libdtrain/cuda/cuda.h"

namespace dtrain::cuda {

class BatchNormPlans;
class ConvPlans;
class MatmulPlans;

class Runtime {
 public:
  explicit Runtime(const CudaOptions& options);
  ~Runtime();

  // Kernels of a step run on `compute`, host copies of batches on `copy`, collectives on `communication`.
  cudaStream_t compute() const { return compute_.get(); }
  cudaStream_t copy() const { return copy_.get(); }
  cudaStream_t communication() const { return communication_.get(); }

  const CudaOptions& options() const { return options_; }
  int multiprocessors() const { return properties_.multiProcessorCount; }
  const cudaDeviceProp& properties() const { return properties_; }
  // DTRAIN_SYNC=1: wait after every launch, so that an error names the op that caused it.
  bool sync_each_launch() const { return sync_each_launch_; }

  // cuDNN's and cuBLASLt's handles with the algorithms chosen so far, made at first use.
  ConvPlans& conv_plans();
  MatmulPlans& matmul_plans();
  // Which schedule of batch norm is taken.
  BatchNormPlans& batch_norm_plans();

 private:
  CudaOptions options_;
  cudaDeviceProp properties_{};
  Stream compute_, copy_, communication_;
  bool sync_each_launch_ = false;
  std::shared_ptr<ConvPlans> conv_plans_;
  std::shared_ptr<MatmulPlans> matmul_plans_;
  std::shared_ptr<BatchNormPlans> batch_norm_plans_;
};

}  // namespace dtrain::cuda
