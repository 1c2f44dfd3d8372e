// Building blocks of kernels: 128-bit accesses, conversions, warp and block reductions, launches.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <type_traits>

#include "dtrain/core/tensor.h"
#include "libdtrain/cuda/runtime.h"

namespace dtrain {

template <>
constexpr DType dtype_of<__nv_bfloat16>() {
  return DType::bf16;
}
template <>
constexpr DType dtype_of<__half>() {
  return DType::f16;
}

namespace cuda {

inline constexpr int kWarp = 32;
inline constexpr int kThreads = 256;  // default block size

__device__ inline float to_float(float x) { return x; }
__device__ inline float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ inline float to_float(__half x) { return __half2float(x); }
__device__ inline float to_float(uint8_t x) { return x; }

template <class T>
__device__ inline T from_float(float x) {
  if constexpr (std::is_same_v<T, __nv_bfloat16>)
    return __float2bfloat16_rn(x);
  else if constexpr (std::is_same_v<T, __half>)
    return __float2half_rn(x);
  else
    return x;
}

// Elements of T per 16-byte access.
template <class T>
inline constexpr int kLanes = 16 / sizeof(T);
// Elements of one vector access: 16 bytes, or fewer where paired with a wider type.
template <class T, int n = kLanes<T>>
struct alignas(n * sizeof(T)) Pack {
  T lane[n];
};

template <class T, int n>
__device__ inline Pack<T, n> packed(const float (&values)[n]) {
  Pack<T, n> pack;
#pragma unroll
  for (int i = 0; i < n; ++i) pack.lane[i] = from_float<T>(values[i]);
  return pack;
}
// Floats per vector access.
inline constexpr int kGroup = kLanes<float>;

// `p` is aligned to sizeof(Pack).
template <class T, int n = kLanes<T>>
__device__ inline Pack<T, n> load(const T* p) {
  return *reinterpret_cast<const Pack<T, n>*>(p);
}
template <class T, int n>
__device__ inline void store(T* p, const Pack<T, n>& pack) {
  *reinterpret_cast<Pack<T, n>*>(p) = pack;
}
// Whether `p` is aligned to `bytes`, a power of two; a slice of rows may not be.
inline bool aligned(const void* p, size_t bytes) { return reinterpret_cast<uintptr_t>(p) % bytes == 0; }

// Dynamic shared memory of the block, sized at launch. All shared memory is dynamic.
extern __shared__ __align__(16) unsigned char block_memory[];
template <class T>
__device__ inline T* shared_memory() {
  return reinterpret_cast<T*>(block_memory);
}

// Warp reduction: the sum over a full warp, in every lane, in fixed order.
template <class T>
__device__ inline T warp_sum(T x) {
  for (int step = kWarp / 2; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
  return x;
}
template <class T>
__device__ inline T warp_max(T x) {
  for (int step = kWarp / 2; step > 0; step /= 2) {
    const T other = __shfl_xor_sync(0xffffffffu, x, step);
    x = x < other ? other : x;
  }
  return x;
}
// Block reduction: the sum over a block of full warps, in every thread. `scratch`: one T per warp in shared memory,
// unused.
template <class T>
__device__ inline T block_sum(T x, T* scratch) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp, warp = static_cast<int>(threadIdx.x) / kWarp;
  const int warps = static_cast<int>(blockDim.x) / kWarp;
  x = warp_sum(x);
  __syncthreads();
  if (lane == 0) scratch[warp] = x;
  __syncthreads();
  T sum = scratch[0];
  for (int i = 1; i < warps; ++i) sum += scratch[i];
  return sum;
}

struct LaunchShape {
  dim3 grid, block;
  size_t shared_bytes = 0;
  bool cooperative = false;       // cooperative launch: blocks may synchronise with each other
  cudaStream_t stream = nullptr;  // null: the compute stream
};

// Opts in to more dynamic shared memory than the default limit, if needed.
inline void allow_shared_memory(const void* kernel, size_t bytes) {
  constexpr size_t kWithoutAsking = 48 << 10;
  if (bytes > kWithoutAsking)
    DT_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)));
}

// Whether all blocks of a cooperative launch are resident at once on an idle device. MPS may share the device, and
// tools that instrument the kernel may take registers or shared memory.
inline bool runs_at_once(const Context& context, const void* kernel, const LaunchShape& shape) {
  allow_shared_memory(kernel, shape.shared_bytes);
  int blocks = 0;  // per multiprocessor
  const auto threads = static_cast<int>(shape.block.x * shape.block.y * shape.block.z);
  DT_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, shape.shared_bytes));
  return int64_t{shape.grid.x} * shape.grid.y * shape.grid.z <= int64_t{blocks} * context.runtime().multiprocessors();
}

// Launches kernel(args...).
template <class... Parameters, class... Arguments>
void launch(const Context& context, void (*kernel)(Parameters...), const LaunchShape& shape, Arguments&&... arguments) {
  const Runtime& runtime = context.runtime();
  const cudaStream_t stream = shape.stream ? shape.stream : runtime.compute();
  allow_shared_memory(reinterpret_cast<const void*>(kernel), shape.shared_bytes);
  cudaLaunchAttribute cooperative{};
  cooperative.id = cudaLaunchAttributeCooperative;
  cooperative.val.cooperative = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = shape.grid;
  config.blockDim = shape.block;
  config.dynamicSmemBytes = shape.shared_bytes;
  config.stream = stream;
  config.attrs = &cooperative;
  config.numAttrs = shape.cooperative ? 1 : 0;
  DT_CUDA(cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...));
  if (runtime.options().sync_each_launch && !context.capturing()) DT_CUDA(cudaStreamSynchronize(stream));
}

// Grid size for `count` threads of work, at most `waves` waves: kernels use grid-stride loops.
inline unsigned blocks_for(const Context& context, int64_t count, int threads, int waves = 4) {
  const Runtime& runtime = context.runtime();
  const int64_t most =
      int64_t{waves} * runtime.multiprocessors() * runtime.properties().maxThreadsPerMultiProcessor / threads;
  return static_cast<unsigned>(std::clamp<int64_t>((count + threads - 1) / threads, 1, most));
}

// Calls body(T()) with the C++ type of a floating-point DType. Throws for others, naming the caller `what`.
template <class Body>
void dispatch_floating(DType dtype, const char* what, Body&& body) {
  switch (dtype) {
    case DType::f32:
      return body(float());
    case DType::bf16:
      return body(__nv_bfloat16());
    case DType::f16:
      return body(__half());
    default:
      throw Error(concat(what, ": a tensor of ", dtype, ", expected f32, bf16 or f16"));
  }
}

// Calls body(T(), lanes) with a constant vector width: kLanes<T> where rows of `channels` divide into 16-byte accesses
// and all `addresses` are aligned, else 1. Throws as dispatch_floating does.
template <class Body>
void dispatch_lanes(const char* what, DType dtype, int64_t channels, std::initializer_list<const void*> addresses,
                    Body&& body) {
  dispatch_floating(dtype, what, [&]<class T>(T type) {
    const bool whole = channels % kLanes<T> == 0 &&
                       std::ranges::all_of(addresses, [](const void* p) { return aligned(p, sizeof(Pack<T>)); });
    if (whole)
      body(type, std::integral_constant<int, kLanes<T>>());
    else
      body(type, std::integral_constant<int, 1>());
  });
}

}  // namespace cuda
}  // namespace dtrain
