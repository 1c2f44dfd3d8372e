// Tiling of a batch norm's images [rows, c] over the blocks of a GPU. All schedules use the same tiling, so that their
// reductions have the same order and their results the same bits.
#pragma once

#include <algorithm>
#include <cstdint>

#include "dtrain/core/host_device.h"
#include "libdtrain/ops/batch_norm_math.h"

namespace dtrain {

// A slice has the channels that kColumns threads access at a time: 128 bytes of each row. A block of kThreads processes
// a slice in sweeps of kSweepRows rows: row block i processes sweeps i, i + row_blocks, i + 2 row_blocks ...
struct BatchNormTiling {
  static constexpr int kThreads = 512, kColumns = 8, kSweepRows = kThreads / kColumns;

  int64_t rows = 0, c = 0;
  int lanes = 1;       // channels per memory access of a thread
  int slices = 1;      // each has kColumns * lanes channels, the last perhaps fewer
  int parallel = 1;    // slices in progress at a time, with all blocks resident
  int row_blocks = 1;  // blocks per slice
  int kept = 0;        // sweeps that a block keeps in shared memory between its two passes
  int tiles = 1;       // 2: double buffering, the next slice is read while this one is finished

  DT_HD constexpr int slice_channels() const { return kColumns * lanes; }
  DT_HD int rounds() const { return (slices + parallel - 1) / parallel; }
  // Bytes of shared memory: of two doubles per channel and warp, and of one sweep of an image.
  DT_HD constexpr int64_t sums_bytes() const {
    return int64_t{kThreads / 32} * slice_channels() * 2 * int64_t{sizeof(double)};
  }
  DT_HD int64_t sweep_bytes(int64_t element_bytes) const { return kThreads * lanes * element_bytes; }
};

// Bytes of relu's mask on a GPU: [slices, rows, kColumns] u8, one byte per memory access. Bit i is set if relu passed
// element i of the access. A last slice with fewer channels is padded.
inline int64_t relu_mask_bytes(int64_t rows, int64_t c, int64_t element_bytes) {
  const int64_t slice = BatchNormTiling::kColumns * channels_per_access(c, element_bytes);
  return (c + slice - 1) / slice * rows * BatchNormTiling::kColumns;
}

struct DeviceLimits {
  int multiprocessors = 1;
  int64_t shared_bytes = 48 << 10;  // limit per block
};

// Tiling for images [rows, c]. `images`: number of images that are kept in shared memory (forward: x; backward: x and
// dz). The blocks of all slices in progress fill the device once. Images larger than shared memory are double-buffered
// by slices; sweeps that do not fit are read again, if possible from L2.
inline BatchNormTiling batch_norm_tiling(int64_t rows, int64_t c, int64_t element_bytes, int images,
                                         const DeviceLimits& device) {
  using Tiling = BatchNormTiling;
  Tiling t{.rows = rows, .c = c, .lanes = channels_per_access(c, element_bytes)};
  const int64_t sweeps = (rows + Tiling::kSweepRows - 1) / Tiling::kSweepRows;
  t.slices = static_cast<int>((c + t.slice_channels() - 1) / t.slice_channels());
  const int64_t sweep_bytes = images * t.sweep_bytes(element_bytes);
  const int64_t capacity = std::max<int64_t>((device.shared_bytes - t.sums_bytes()) / sweep_bytes, 0);  // per block
  const int64_t all = capacity * device.multiprocessors;
  const bool whole = t.slices == 1 || (t.slices * sweeps <= all && t.slices <= device.multiprocessors);
  const int64_t at_a_time = whole ? t.slices : std::clamp<int64_t>(all / 2 / sweeps, 1, t.slices);
  const int64_t rounds = (t.slices + at_a_time - 1) / at_a_time;
  t.parallel =
      static_cast<int>(std::min<int64_t>((t.slices + rounds - 1) / rounds, std::max(device.multiprocessors, 1)));
  t.row_blocks = static_cast<int>(std::clamp<int64_t>(device.multiprocessors / t.parallel, 1, sweeps));
  t.tiles = t.rounds() > 1 ? 2 : 1;
  t.kept = static_cast<int>(std::min<int64_t>(capacity / t.tiles, (sweeps + t.row_blocks - 1) / t.row_blocks));
  return t;
}

}  // namespace dtrain
