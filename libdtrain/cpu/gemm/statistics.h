// Batch-norm statistics of a convolution's output, fused into its epilogue.
#pragma once

#include <cstdint>
#include <vector>

#include "dtrain/core/context.h"
#include "libdtrain/core/moments.h"
#include "libdtrain/cpu/kernels/gemm.h"

namespace dtrain::cpu {

// Mean and squared deviations of each channel over the pixels of an output. Each chunk of a ChunkedRange has its own,
// whichever thread runs it. Sums in f32 over at most a few hundred pixels, about the mean of the pixels before, are
// merged in double (Chan et al.), so that neither a large mean nor an outlier costs digits. Channels form blocks of
// kBlock.
class FusedStatistics {
 public:
  static constexpr int64_t kBlock = 16;

  FusedStatistics(const Context&, int64_t channels);

  // Where micro-kernels add up the channels from `channel` on for a chunk: null before the chunk's first rows, which
  // add_rows takes.
  ColumnStatistics accumulators(int64_t chunk, int64_t channel);
  // Reports `rows` rows that micro-kernels have added up there since the last call.
  void commit_rows(int64_t chunk, int64_t channel, int64_t count, int64_t rows);
  // Adds up `rows` rows of `count` channels from `channel` on, `stride` elements apart from `y` on.
  template <class T>
  void add_rows(int64_t chunk, int64_t channel, int64_t count, int64_t rows, const T* y, int64_t stride);

  // Of all chunks, merged in their order.
  Moments moments(int64_t channel);

 private:
  struct Block {
    int64_t count = 0, pending = 0;  // rows that are merged, and rows in the sums
  };
  // Mean and deviation of the merged rows, and sums about the pivot, which is that mean.
  struct ChunkStatistics {
    std::vector<float> pivot, sum, square;
    std::vector<double> mean, deviation;
    std::vector<Block> blocks;

    void merge_sums(size_t block);
  };
  ChunkStatistics& of_chunk(int64_t chunk) { return chunks_[static_cast<size_t>(chunk)]; }

  std::vector<ChunkStatistics> chunks_;
};

}  // namespace dtrain::cpu
