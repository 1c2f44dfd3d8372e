#include "libdtrain/cuda/wire_cast.h"

#include "libdtrain/cuda/kernels.cuh"

namespace dtrain::cuda {
namespace {

// Vectorised over the first `groups` groups.
template <class From, class To>
__global__ void __launch_bounds__(kThreads) cast_kernel(const From* from, int64_t groups, int64_t count, To* to) {
  const int64_t threads = int64_t{gridDim.x} * kThreads;
  const int64_t thread = int64_t{blockIdx.x} * kThreads + threadIdx.x;
#pragma unroll 4
  for (int64_t i = thread; i < groups; i += threads) {
    const auto old = load<From, kGroup>(from + kGroup * i);
    Pack<To, kGroup> cast;
    for (int lane = 0; lane < kGroup; ++lane) cast.lane[lane] = from_float<To>(to_float(old.lane[lane]));
    store(to + kGroup * i, cast);
  }
  for (int64_t i = kGroup * groups + thread; i < count; i += threads) to[i] = from_float<To>(to_float(from[i]));
}

template <class From, class To>
void cast(const Context& context, cudaStream_t stream, const Tensor& from, const Tensor& to) {
  const int64_t count = from.count();
  DT_CHECK(to.count() == count, "wire conversion: element counts ", count, " and ", to.count());
  if (count == 0) return;
  const bool wide = aligned(from.raw(), kGroup * sizeof(From)) && aligned(to.raw(), kGroup * sizeof(To));
  const LaunchShape shape{.grid = blocks_for(context, count / kGroup, kThreads), .block = kThreads, .stream = stream};
  launch(context, cast_kernel<From, To>, shape, from.data<From>(), wide ? count / kGroup : 0, count, to.data<To>());
}

}  // namespace

void round_to_wire(const Context& context, cudaStream_t stream, const Tensor& x, const Tensor& wire) {
  dispatch_floating(wire.dtype(), "round_to_wire",
                    [&](auto zero) { cast<float, decltype(zero)>(context, stream, x, wire); });
}

void copy_from_wire(const Context& context, cudaStream_t stream, const Tensor& wire, const Tensor& x) {
  dispatch_floating(wire.dtype(), "copy_from_wire",
                    [&](auto zero) { cast<decltype(zero), float>(context, stream, wire, x); });
}

}  // namespace dtrain::cuda
