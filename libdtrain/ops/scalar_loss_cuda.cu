// CUDA kernels of the mean squared error: two-stage reduction; one block sums the partial sums.
#include "dtrain/ops/scalar_loss.h"
#include "libdtrain/ops/pointwise_kernels.cuh"
#include "libdtrain/ops/scalar_loss_kernels.h"

namespace dtrain::cuda {
namespace {

constexpr int kSumThreads = 512;
constexpr int64_t kPerBlock = 16 * kSumThreads, kSumBlocks = 1024;  // minimum of elements per block; maximum of blocks
constexpr size_t kScratchBytes = kSumThreads / kWarp * sizeof(double);

template <class T>
__global__ void __launch_bounds__(kSumThreads) squares_kernel(int64_t count, const T* x, const float* y, double* sums) {
  double sum = 0;
  for (int64_t i = int64_t{blockIdx.x} * kSumThreads + threadIdx.x; i < count; i += int64_t{gridDim.x} * kSumThreads) {
    const float difference = to_float(x[i]) - y[i];
    sum += static_cast<double>(difference * difference);
  }
  sum = block_sum(sum, shared_memory<double>());
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(kSumThreads) mean_kernel(int64_t count, int blocks, const double* sums, float* loss) {
  double sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < blocks; i += kSumThreads) sum += sums[i];
  sum = block_sum(sum, shared_memory<double>());
  if (threadIdx.x == 0) *loss = static_cast<float>(sum / static_cast<double>(count));
}

struct Difference {
  const float* dloss;
  float factor;
  __device__ float operator()(float x, float y) const { return *dloss * factor * (x - y); }
};

}  // namespace

void mean_squared_error(Context& context, const Tensor& x, const Tensor& target, const Tensor& loss) {
  const int64_t count = x.count();
  const int64_t blocks = std::clamp<int64_t>(count / kPerBlock, 1, kSumBlocks);
  const Tensor sums = context.empty({blocks * static_cast<int64_t>(sizeof(double))}, DType::u8);
  auto* const sum = static_cast<double*>(sums.raw());
  dispatch_floating(x.dtype(), "mean_squared_error", [&]<class T>(T) {
    launch(context, squares_kernel<T>, {static_cast<unsigned>(blocks), kSumThreads, kScratchBytes}, count, x.data<T>(),
           target.data<float>(), sum);
  });
  launch(context, mean_kernel, {1, kSumThreads, kScratchBytes}, count, static_cast<int>(blocks), sum,
         loss.data<float>());
}

void mean_squared_error_grad(Context& context, const Tensor& dloss, const Tensor& x, const Tensor& target,
                             const Tensor& dx, bool add) {
  const Difference difference{dloss.data<float>(), 2 / static_cast<float>(x.count())};
  dispatch_floating(dx.dtype(), "mean_squared_error_grad", [&]<class T>(T) {
    write(context, difference, add, dx.count(), dx.data<T>(), x.data<T>(), target.data<float>());
  });
}

}  // namespace dtrain::cuda
