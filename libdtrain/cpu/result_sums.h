// The statistics of a convolution's result that its batch norm wants, made while the result is written.
#pragma once

#include <cstdint>
#include <vector>

#include "libdtrain/core/context.h"
#include "libdtrain/core/moments.h"
#include "libdtrain/cpu/kernels/product.h"

namespace dtrain::cpu {

// Moments over the pixels of a result, channel by channel. Each of WorkShares has its own, whoever takes it: sums in
// float over a few hundred pixels, about the mean of those before, are merged in double, so that neither a large mean
// nor an outlier costs digits. Channels go in blocks of kBlock.
class ResultSums {
 public:
  static constexpr int64_t kBlock = 16;

  ResultSums(const Context&, int64_t channels);

  // Where kernels add up the channels from `channel` on for a share: nowhere before its first rows there, which are for
  // add_rows.
  ColumnSums from(int64_t share, int64_t channel);
  // All rows that kernels have added up there since the last call.
  void added(int64_t share, int64_t channel, int64_t count, int64_t rows);
  // Adds up `rows` rows of `count` channels from `channel` on, `stride` elements apart from `y` on.
  template <class T>
  void add_rows(int64_t share, int64_t channel, int64_t count, int64_t rows, const T* y, int64_t stride);

  // Of all shares, merged in their order.
  Moments of(int64_t channel);

 private:
  struct Block {
    int64_t count = 0, pending = 0;  // rows that are merged, and those that are in the sums
  };
  // Mean and deviation of what is merged, and sums about the pivot, which is that mean.
  struct Own {
    std::vector<float> pivot, sum, square;
    std::vector<double> mean, deviation;
    std::vector<Block> blocks;

    void merge_sums(size_t block);
  };
  std::vector<Own> own_;  // of each share

  Own& of_share(int64_t share) { return own_[static_cast<size_t>(share)]; }
};

}  // namespace dtrain::cpu
