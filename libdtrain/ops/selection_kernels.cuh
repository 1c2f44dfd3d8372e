// Block-wide selection in a row: stable ranks of flags, and radix select.
#pragma once

#include "libdtrain/cuda/kernels.cuh"

namespace dtrain::cuda {

inline constexpr int kSelectionThreads = 1024;
inline constexpr unsigned kAllLanes = 0xffffffffu;

struct BlockRank {
  int before;  // threads before this one with the flag
  int total;   // threads with the flag
};

// Called by all threads of a block of full warps. `scratch`: unused shared memory, one int per warp.
__device__ inline BlockRank block_rank(bool flag, int* scratch) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp, warp = static_cast<int>(threadIdx.x) / kWarp;
  const unsigned lanes = __ballot_sync(kAllLanes, flag);
  __syncthreads();
  if (lane == 0) scratch[warp] = __popc(lanes);
  __syncthreads();
  BlockRank rank{__popc(lanes & ((1u << lane) - 1)), 0};
  for (int i = 0; i < static_cast<int>(blockDim.x) / kWarp; ++i) {
    if (i < warp) rank.before += scratch[i];
    rank.total += scratch[i];
  }
  return rank;
}

// body(i, key(i)) for this thread's part of [0, n) where the key is not 0. Several keys are in flight.
template <class Key, class Body>
__device__ void for_each_key(int64_t n, Key&& key, Body&& body) {
  constexpr int kInFlight = 4;
  const int64_t stride = blockDim.x;
  for (int64_t first = threadIdx.x; first < n; first += kInFlight * stride) {
    uint64_t found[kInFlight];
#pragma unroll
    for (int u = 0; u < kInFlight; ++u) {
      const int64_t i = first + u * stride;
      found[u] = i < n ? key(i) : uint64_t{0};
    }
#pragma unroll
    for (int u = 0; u < kInFlight; ++u)
      if (found[u] != 0) body(first + u * stride, found[u]);
  }
}

// Shared memory of Selection: histogram of a digit, and results.
struct SelectionScratch {
  static constexpr int kDigitBits = 11, kBins = 1 << kDigitBits;
  int bins[kBins];
  int bin, wanted, total;
};

// Radix select of the largest of up to 2^31 distinct keys, from the highest digit down.
struct Selection {
  uint64_t threshold;  // keys >= threshold are selected
  int chosen;          // their number
};

// Finds the bin with the wanted-th largest key: s.bin; s.wanted becomes its rank within the bin, s.total the number of
// all keys. Called by one warp.
__device__ inline void find_bin(SelectionScratch& s, int wanted) {
  constexpr int kShare = SelectionScratch::kBins / kWarp;
  const int lane = static_cast<int>(threadIdx.x), last = SelectionScratch::kBins - 1 - lane * kShare;
  int own = 0;
  for (int i = 0; i < kShare; ++i) own += s.bins[last - i];
  int up_to = own;
  for (int step = 1; step < kWarp; step *= 2) {
    const int other = __shfl_up_sync(kAllLanes, up_to, step);
    if (lane >= step) up_to += other;
  }
  if (lane == kWarp - 1) s.total = up_to;
  if (wanted <= up_to - own || wanted > up_to) return;
  int left = wanted - (up_to - own), bin = last;
  while (s.bins[bin] < left) left -= s.bins[bin--];
  s.bin = bin;
  s.wanted = left;
}

// Selects the `wanted` largest of key(i), i in [0, n), all if fewer; key 0 excludes an element. Called by all threads
// of a block of full warps.
template <class Key>
__device__ Selection select_largest(int64_t n, int wanted, Key&& key, SelectionScratch& s) {
  if (wanted <= 0) return {~uint64_t{0}, 0};
  uint64_t prefix = 0;
  int left = wanted;
  for (int shift = 64; shift > 0;) {
    const int bits = shift < SelectionScratch::kDigitBits ? shift : SelectionScratch::kDigitBits, above = shift;
    shift -= bits;
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < SelectionScratch::kBins; i += static_cast<int>(blockDim.x))
      s.bins[i] = 0;
    __syncthreads();
    for_each_key(n, key, [&](int64_t, uint64_t found) {
      if (above == 64 || found >> above == prefix) atomicAdd(&s.bins[found >> shift & ((1u << bits) - 1)], 1);
    });
    __syncthreads();
    if (threadIdx.x < kWarp) find_bin(s, left);
    __syncthreads();
    if (above == 64 && s.total <= wanted) return {1, s.total};
    prefix = prefix << bits | static_cast<uint64_t>(s.bin);
    left = s.wanted;
    if (s.bins[s.bin] == left) return {prefix << shift, wanted};
  }
  return {prefix, wanted};
}

}  // namespace dtrain::cuda
