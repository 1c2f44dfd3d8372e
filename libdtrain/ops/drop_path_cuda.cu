#include "dtrain/ops/drop_path.h"
#include "libdtrain/cuda/kernels.cuh"
#include "libdtrain/ops/drop_path_kernels.h"
#include "libdtrain/ops/drop_path_math.h"

namespace dtrain::cuda {
namespace {

template <class T>
__global__ void __launch_bounds__(kThreads)
    drop_path_kernel(const StepScalars* scalars, DropPathOptions options, uint64_t stream, int64_t width, int64_t count,
                     const T* x, bool add, T* y) {
  const StepInputs step = *scalars;
  int64_t image = -1;
  float factor = 0;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count; i += int64_t{gridDim.x} * kThreads) {
    if (const int64_t at = i / width; at != image) image = at, factor = drop_path_factor(step, options, stream, at);
    const float value = to_float(x[i]) * factor;
    y[i] = from_float<T>(add ? to_float(y[i]) + value : value);
  }
}

}  // namespace

void drop_path(Context& context, const Tensor& x, const DropPathOptions& options, uint64_t stream, const Tensor& y,
               bool add) {
  dispatch_floating(y.dtype(), "drop_path", [&]<class T>(T) {
    launch(context, drop_path_kernel<T>, {blocks_for(context, y.count(), kThreads), kThreads}, context.scalars(),
           options, stream, x.count() / x.dim(0), x.count(), x.data<T>(), add, y.data<T>());
  });
}

}  // namespace dtrain::cuda
