// What the forward and the backward kernels of batch_norm share: who works where, what is kept in shared memory, and
// the sums over the rows of a channel, in one fixed order.
#pragma once

#include <cooperative_groups.h>

#include <cstring>
#include <type_traits>
#include <utility>

#include "libdtrain/cuda/kernels.cuh"
#include "libdtrain/ops/batch_norm_plans.h"
#include "libdtrain/ops/batch_norm_tiling.h"

namespace dtrain::cuda {

using Tiling = BatchNormTiling;

// Two sums that are made together.
struct Sums {
  double first = 0, second = 0;
};

// Slices run along x of the grid, and those who share the rows of a slice along y: blocks that start together, one
// after the other along x, then touch whole rows of an image and not 128 bytes of each of many.
__device__ inline int slice_of_block() { return static_cast<int>(blockIdx.x); }
__device__ inline int row_block() { return static_cast<int>(blockIdx.y); }

// The part of a slice that a thread works on: n channels of `count` rows, the one at i `offset(i)` elements into the
// image and `mask_offset(i)` bytes into the mask. Of few registers: rows are numbered in 32 bits.
struct Place {
  int64_t channel = 0, c = 0;
  int row = 0, mask_row = 0, step = 0, count = 0;  // the first row, in the image and the mask, and to the next

  __device__ int64_t offset(int i) const { return (row + i * step) * c + channel; }
  __device__ int64_t mask_offset(int i) const {
    return int64_t{mask_row + i * step} * Tiling::kColumns + threadIdx.x % Tiling::kColumns;
  }
};
__device__ inline Place place_in(const Tiling& t, int slice) {
  const int block = row_block(), row = static_cast<int>(threadIdx.x) / Tiling::kColumns;
  const int sweeps = static_cast<int>((t.rows - row + Tiling::kSweepRows - 1) / Tiling::kSweepRows);  // that have row
  Place place;
  place.channel = (int64_t{slice} * Tiling::kColumns + threadIdx.x % Tiling::kColumns) * t.lanes;
  place.c = t.c;
  place.row = block * Tiling::kSweepRows + row;
  place.mask_row = slice * static_cast<int>(t.rows) + place.row;
  place.step = t.row_blocks * Tiling::kSweepRows;
  if (place.channel < t.c && block < sweeps) place.count = (sweeps - 1 - block) / t.row_blocks + 1;
  return place;
}

// n elements in one access, held as words: 16-bit elements of their own would take a register each.
template <class T, int n>
struct alignas(n * sizeof(T)) Access {
  using Word = std::conditional_t<n * sizeof(T) == 2, uint16_t, uint32_t>;
  static constexpr int kWords = n * sizeof(T) / sizeof(Word);
  Word word[kWords];
};

// std::bit_cast; CUDA's pairs of 16-bit numbers are not trivially copyable.
template <class To, class From>
__device__ inline To bits_as(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(static_cast<void*>(&to), static_cast<const void*>(&from), sizeof to);
  return to;
}

template <class T, int n>
__device__ inline void decode(const Access<T, n>& access, float (&x)[n]) {
#pragma unroll
  for (int l = 0; l < n; ++l) {
    if constexpr (n == 1 || sizeof(T) == 4) {
      x[l] = to_float(bits_as<T>(access.word[l]));
    } else {
      const uint32_t word = access.word[l / 2];
      if constexpr (std::is_same_v<T, __nv_bfloat16>)
        x[l] = bits_as<float>(l % 2 == 0 ? word << 16 : word & 0xffff0000u);
      else
        x[l] = to_float(bits_as<T>(static_cast<uint16_t>(l % 2 == 0 ? word : word >> 16)));
    }
  }
}
template <class T, int n>
__device__ inline Access<T, n> encode(const float (&x)[n]) {
  Access<T, n> access;
  using Word = typename Access<T, n>::Word;
#pragma unroll
  for (int w = 0; w < Access<T, n>::kWords; ++w) {
    if constexpr (n == 1 || sizeof(T) == 4)
      access.word[w] = bits_as<Word>(from_float<T>(x[w]));
    else if constexpr (std::is_same_v<T, __nv_bfloat16>)
      access.word[w] = bits_as<Word>(__floats2bfloat162_rn(x[2 * w], x[2 * w + 1]));
    else
      access.word[w] = bits_as<Word>(__floats2half2_rn(x[2 * w], x[2 * w + 1]));
  }
  return access;
}
template <class T, int n>
__device__ inline Access<T, n> read(const T* p) {
  return *reinterpret_cast<const Access<T, n>*>(p);
}
template <class T, int n>
__device__ inline void write(T* p, const Access<T, n>& access) {
  *reinterpret_cast<Access<T, n>*>(p) = access;
}

// What a thread keeps in shared memory of what it has read, in that order.
template <class T, int n>
struct Tile {
  int first = 0, kept = 0;  // items, from the start of all tiles

  // `index`: the tile's number, from 0, where a block has several.
  __device__ Tile(const Tiling& t, int index)
      : first(index * t.kept * Tiling::kThreads + static_cast<int>(threadIdx.x)), kept(t.kept) {}
  __device__ bool has(int i) const { return i < kept; }
  __device__ Access<T, n>& operator[](int i) const {
    constexpr int64_t kSums = Tiling{.lanes = n}.sums_bytes();
    return reinterpret_cast<Access<T, n>*>(shared_memory<unsigned char>() + kSums)[first + i * Tiling::kThreads];
  }
  __device__ void put(int i, const Access<T, n>& item) {
    if (has(i)) (*this)[i] = item;
  }
};

template <int n>
__device__ inline void load_channels(const float* from, int64_t channel, float (&to)[n]) {
#pragma unroll
  for (int l = 0; l < n; ++l) to[l] = from[channel + l];
}

// Adds up over the rows of the block and writes the sums of its slice to partial[channel][row block].
template <int n>
__device__ inline void store_partial(const Tiling& t, int slice, Sums (&own)[n], Sums* partial) {
  constexpr int kWarps = Tiling::kThreads / kWarp, kChannels = Tiling::kColumns * n;
  Sums* const scratch = shared_memory<Sums>();
  const int thread = static_cast<int>(threadIdx.x);
#pragma unroll
  for (int l = 0; l < n; ++l) {
#pragma unroll
    for (int step = Tiling::kColumns; step < kWarp; step *= 2) {
      own[l].first += __shfl_xor_sync(0xffffffffu, own[l].first, step);
      own[l].second += __shfl_xor_sync(0xffffffffu, own[l].second, step);
    }
    if (thread % kWarp < Tiling::kColumns)
      scratch[thread / kWarp * kChannels + thread % Tiling::kColumns * n + l] = own[l];
  }
  __syncthreads();
  const int64_t channel = int64_t{slice} * kChannels + thread;
  if (thread < kChannels && channel < t.c) {
    Sums sums;
    for (int warp = 0; warp < kWarps; ++warp) {
      sums.first += scratch[warp * kChannels + thread].first;
      sums.second += scratch[warp * kChannels + thread].second;
    }
    partial[channel * t.row_blocks + row_block()] = sums;
  }
}

// The sums of a channel, in every lane of the warp that calls.
__device__ inline Sums channel_sums(const Tiling& t, int64_t channel, const Sums* partial) {
  Sums sums;
  for (int block = static_cast<int>(threadIdx.x) % kWarp; block < t.row_blocks; block += kWarp) {
    const Sums& one = partial[channel * t.row_blocks + block];
    sums.first += one.first;
    sums.second += one.second;
  }
  return {warp_sum(sums.first), warp_sum(sums.second)};
}

// finish(channel, sums) once for each channel of [begin, end) that falls to this block of `blocks`, in one lane.
template <class Finish>
__device__ void finish_channels(const Tiling& t, int64_t begin, int64_t end, int block, int blocks, const Sums* partial,
                                Finish&& finish) {
  const int warp = static_cast<int>(threadIdx.x) / kWarp, warps = static_cast<int>(blockDim.x) / kWarp;
  for (int64_t channel = begin + block + int64_t{warp} * blocks; channel < end; channel += int64_t{warps} * blocks) {
    const Sums sums = channel_sums(t, channel, partial);
    if (threadIdx.x % kWarp == 0) finish(channel, sums);
  }
}

// The range of a thread's rows, [begin(count), end(count)).
struct Part {
  enum Which { first, second, all } which;
  __device__ Part(Which w) : which(w) {}
  __device__ int begin(int count) const { return which == second ? count / 2 : 0; }
  __device__ int end(int count) const { return which == first ? count / 2 : count; }
};

// One launch over all slices in turn, every block resident; see BatchNormTiling. Pass has
//   read(slice, tile)                    the sums of a block over a slice
//   finish(begin, end, block, blocks)    what the sums of whole channels give
//   write(slice, tile, part)             the results of that part of a thread's rows
// Between the first and the second, and the second and the third, each block waits for the others; meanwhile it writes
// results of the slice before.
template <class Pass>
__device__ void run_resident(const Tiling& t, const Pass& pass) {
  const auto grid = cooperative_groups::this_grid();
  const int behind = t.tiles - 1, rounds = t.rounds();
  for (int round = 0; round < rounds + behind; ++round) {
    const bool fresh = round < rounds;
    const int slice = round * t.parallel + slice_of_block();
    const int64_t channels = t.slice_channels();
    for (int half = 0; half < 2; ++half) {
      cooperative_groups::grid_group::arrival_token token{};
      if (fresh) {
        if (half == 0)
          pass.read(slice, round % t.tiles);
        else
          pass.finish(slice * channels, min(t.c, (slice + 1) * channels), row_block(), t.row_blocks);
        token = grid.barrier_arrive();
        if (behind == 0) grid.barrier_wait(std::move(token));
      }
      if (behind != 0 ? round > 0 : half == 1)
        pass.write(slice - behind * t.parallel, (round - behind) % t.tiles,
                   behind == 0 ? Part::all
                   : half == 0 ? Part::first
                               : Part::second);
      if (fresh && behind != 0) grid.barrier_wait(std::move(token));
    }
  }
}

// `streams`: see batch_norm_tiling. `held`: multiprocessors that other kernels may hold meanwhile.
inline Tiling tiling_of(Context& context, const Tensor& x, int streams, int held = 0) {
  const cudaDeviceProp& device = context.runtime().properties();
  const BatchNormSchedule& schedule = batch_norm_plans(context).schedule();
  const int64_t c = x.shape()[3];
  const Tiling tiling =
      batch_norm_tiling(x.count() / c, c, static_cast<int64_t>(size_of(x.dtype())), streams,
                        {std::max(device.multiProcessorCount - schedule.spare_multiprocessors - held, 1),
                         std::min(static_cast<int64_t>(device.sharedMemPerBlockOptin), schedule.shared_bytes)});
  // Those of the last round may go beyond the slices that there are.
  DT_CHECK(tiling.rows * tiling.slices < int64_t{1} << 30, "batch_norm: ", x.shape(), " is too large for the GPU");
  return tiling;
}

inline dim3 two_pass_grid(const Tiling& t) {
  return {static_cast<unsigned>(t.slices), static_cast<unsigned>(t.row_blocks)};
}
inline constexpr int kFinishThreads = 128;
inline unsigned finish_blocks(const Tiling& t) {
  constexpr int kWarps = kFinishThreads / kWarp;
  return static_cast<unsigned>((t.c + kWarps - 1) / kWarps);
}
// With a thread for each channel, not a warp.
inline unsigned channel_blocks(const Tiling& t) {
  return static_cast<unsigned>((t.c + kFinishThreads - 1) / kFinishThreads);
}
inline Tensor partial_sums(Context& context, const Tiling& t) {
  return context.empty({t.c * t.row_blocks * static_cast<int64_t>(sizeof(Sums))}, DType::u8);
}

// `element_bytes`: bytes of shared memory for each element that a tile keeps. False, with nothing queued, where the
// blocks would not all run at once.
template <class Operands>
[[nodiscard]] bool launch_resident(Context& context, void (*kernel)(Operands), const Operands& operands,
                                   size_t element_bytes) {
  const Tiling& t = operands.tiling;
  const size_t tiles = static_cast<size_t>(t.tiles * t.kept * t.sweep_bytes(static_cast<int64_t>(element_bytes)));
  const LaunchShape shape{{static_cast<unsigned>(t.parallel), static_cast<unsigned>(t.row_blocks)},
                          Tiling::kThreads,
                          static_cast<size_t>(t.sums_bytes()) + tiles,
                          /*cooperative=*/true};
  if (!runs_at_once(context, reinterpret_cast<const void*>(kernel), shape)) return false;
  launch(context, kernel, shape, operands);
  return true;
}

// body(T(), lanes), `lanes` a constant: that of the tiling. Images are aligned for it.
template <class Body>
void dispatch_lanes(const char* what, const Tensor& x, Body&& body) {
  dispatch_lanes(what, x.dtype(), x.dim(3), {}, body);
}

}  // namespace dtrain::cuda
