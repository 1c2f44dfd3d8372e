// nvcc's built-ins: qualifiers, index variables, barriers and warp collectives.
#pragma once

#include <cstdint>
#include <cstring>
#include <source_location>
#include <type_traits>

#include "../vector_types.h"

#define __global__
#define __device__
#define __host__
#define __constant__
#define __grid_constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
// A section attribute makes static shared memory an error, since GCC takes it for a local variable. All shared memory
// is dynamic here, declared `extern`.
#define __shared__ __attribute__((section(".bss.emulated_shared")))

extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
inline constexpr int warpSize = 32;

namespace emulation {

enum class Meeting {
  barrier,
  barrier_or,
  barrier_and,
  barrier_count,
  grid_barrier,
  warp_barrier,  // from here on: lanes of a mask
  shuffle,
  shuffle_up,
  shuffle_down,
  shuffle_xor,
  ballot,
  any,
  all,
};

// Waits until all threads of the block (grid, mask) arrive at this place; returns the collective's result. Aborts on
// deadlock or if kind, mask or place differ.
uint64_t meet(Meeting kind, unsigned mask, uint64_t value, int argument, int width, std::source_location place);
unsigned active_lanes();

// Types that CUDA can shuffle; cuda_bf16.h and cuda_fp16.h add theirs.
template <class T>
inline constexpr bool can_shuffle = std::is_arithmetic_v<T> && sizeof(T) >= 4;

template <class T>
T shuffle(Meeting kind, unsigned mask, T value, int argument, int width, std::source_location place) {
  static_assert(can_shuffle<T>, "CUDA has no shuffle of this type");
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = meet(kind, mask, bits, argument, width, place);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace emulation

inline void __syncthreads(std::source_location place = std::source_location::current()) {
  emulation::meet(emulation::Meeting::barrier, 0, 0, 0, 0, place);
}
inline int __syncthreads_or(int predicate, std::source_location place = std::source_location::current()) {
  return static_cast<int>(emulation::meet(emulation::Meeting::barrier_or, 0, predicate != 0, 0, 0, place));
}
inline int __syncthreads_and(int predicate, std::source_location place = std::source_location::current()) {
  return static_cast<int>(emulation::meet(emulation::Meeting::barrier_and, 0, predicate != 0, 0, 0, place));
}
inline int __syncthreads_count(int predicate, std::source_location place = std::source_location::current()) {
  return static_cast<int>(emulation::meet(emulation::Meeting::barrier_count, 0, predicate != 0, 0, 0, place));
}
inline void __syncwarp(unsigned mask = 0xffffffffu, std::source_location place = std::source_location::current()) {
  emulation::meet(emulation::Meeting::warp_barrier, mask, 0, 0, 0, place);
}
inline unsigned __ballot_sync(unsigned mask, int predicate,
                              std::source_location place = std::source_location::current()) {
  return static_cast<unsigned>(emulation::meet(emulation::Meeting::ballot, mask, predicate != 0, 0, 0, place));
}
inline int __any_sync(unsigned mask, int predicate, std::source_location place = std::source_location::current()) {
  return static_cast<int>(emulation::meet(emulation::Meeting::any, mask, predicate != 0, 0, 0, place));
}
inline int __all_sync(unsigned mask, int predicate, std::source_location place = std::source_location::current()) {
  return static_cast<int>(emulation::meet(emulation::Meeting::all, mask, predicate != 0, 0, 0, place));
}
// Threads are interleaved: only the calling one is active.
inline unsigned __activemask() { return emulation::active_lanes(); }

template <class T>
T __shfl_sync(unsigned mask, T value, int lane, int width = warpSize,
              std::source_location place = std::source_location::current()) {
  return emulation::shuffle(emulation::Meeting::shuffle, mask, value, lane, width, place);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = warpSize,
                 std::source_location place = std::source_location::current()) {
  return emulation::shuffle(emulation::Meeting::shuffle_up, mask, value, static_cast<int>(delta), width, place);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = warpSize,
                   std::source_location place = std::source_location::current()) {
  return emulation::shuffle(emulation::Meeting::shuffle_down, mask, value, static_cast<int>(delta), width, place);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = warpSize,
                  std::source_location place = std::source_location::current()) {
  return emulation::shuffle(emulation::Meeting::shuffle_xor, mask, value, lanes, width, place);
}
