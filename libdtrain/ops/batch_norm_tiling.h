// How the blocks of a GPU share the images [rows, c] of a batch norm: the same for each of its schedules, so that all
// of them add up in the same order and give the same bits.
#pragma once

#include <algorithm>
#include <cstdint>

#include "libdtrain/core/host_device.h"
#include "libdtrain/ops/batch_norm_math.h"

namespace dtrain {

// A slice is as many channels as kColumns threads move at a time: 128 bytes of each row. A block of kThreads goes over
// it in sweeps of kSweepRows rows; those of a row block are the sweeps first, first + row_blocks, first + 2 row_blocks
// ...
struct BatchNormTiling {
  static constexpr int kThreads = 512, kColumns = 8, kSweepRows = kThreads / kColumns;

  int64_t rows = 0, c = 0;
  int lanes = 1;       // channels that a thread moves at a time
  int slices = 1;      // each has kColumns * lanes channels, the last perhaps fewer
  int parallel = 1;    // slices that blocks work on at a time, where all blocks are resident
  int row_blocks = 1;  // blocks that share the rows of a slice
  int kept = 0;        // sweeps that a block keeps in shared memory until it needs them again
  int tiles = 1;       // 2: the next slice is read while this one is finished

  DT_HD constexpr int slice_channels() const { return kColumns * lanes; }
  DT_HD int rounds() const { return (slices + parallel - 1) / parallel; }
  // Bytes of shared memory: what kSums doubles per channel and warp take, and the tiles.
  DT_HD constexpr int64_t sums_bytes() const {
    return int64_t{kThreads / 32} * slice_channels() * 2 * int64_t{sizeof(double)};
  }
  DT_HD int64_t sweep_bytes(int64_t element_bytes) const { return kThreads * lanes * element_bytes; }
};

// The gate of relu as a GPU keeps it: a byte for each access to an image, [slices, rows, kColumns], so that what is
// written together lies together; bit i is set where relu let the element i of the access through. One bit per element
// of 16, two of 32; odd numbers of channels take a byte for each. A last slice with fewer channels is padded.
inline int64_t relu_mask_bytes(int64_t rows, int64_t c, int64_t element_bytes) {
  const int64_t slice = BatchNormTiling::kColumns * channels_per_access(c, element_bytes);
  return (c + slice - 1) / slice * rows * BatchNormTiling::kColumns;
}

struct DeviceLimits {
  int multiprocessors = 1;
  int64_t shared_bytes = 48 << 10;  // that one block may have
};

// `streams`: images of which a block keeps its part (forward x; backward x and dz). Blocks of all slices worked on at a
// time fill the device once. Where the whole is more than shared memory holds, half of that is for the slices being
// read and half for those being finished; the sweeps that do not fit are read again, as far as possible from L2.
inline BatchNormTiling batch_norm_tiling(int64_t rows, int64_t c, int64_t element_bytes, int non_temporal,
                                         const DeviceLimits& device) {
  using Tiling = BatchNormTiling;
  Tiling t{.rows = rows, .c = c, .lanes = channels_per_access(c, element_bytes)};
  const int64_t sweeps = (rows + Tiling::kSweepRows - 1) / Tiling::kSweepRows;
  t.slices = static_cast<int>((c + t.slice_channels() - 1) / t.slice_channels());
  const int64_t sweep_bytes = non_temporal * t.sweep_bytes(element_bytes);
  const int64_t room = std::max<int64_t>((device.shared_bytes - t.sums_bytes()) / sweep_bytes, 0);  // a block's
  const int64_t all = room * device.multiprocessors;
  const bool whole = t.slices == 1 || (t.slices * sweeps <= all && t.slices <= device.multiprocessors);
  const int64_t at_a_time = whole ? t.slices : std::clamp<int64_t>(all / 2 / sweeps, 1, t.slices);
  const int64_t rounds = (t.slices + at_a_time - 1) / at_a_time;
  t.parallel =
      static_cast<int>(std::min<int64_t>((t.slices + rounds - 1) / rounds, std::max(device.multiprocessors, 1)));
  t.row_blocks = static_cast<int>(std::clamp<int64_t>(device.multiprocessors / t.parallel, 1, sweeps));
  t.tiles = t.rounds() > 1 ? 2 : 1;
  t.kept = static_cast<int>(std::min<int64_t>(room / t.tiles, (sweeps + t.row_blocks - 1) / t.row_blocks));
  return t;
}

}  // namespace dtrain
