// The sums of a convolution's result that its batch norm wants, made while the result is written.
#pragma once

#include <cstdint>
#include <vector>

#include "libdtrain/core/context.h"
#include "libdtrain/cpu/kernels/product.h"

namespace dtrain::cpu {

// Of y - pivot and its square, over `count` values y of a channel.
struct PartialSums {
  double pivot = 0, sum = 0, square = 0, count = 0;
};

// Sums over the pixels of a result, channel by channel. Each thread has its own, about the first value that it wrote of
// a channel: squares of no more than deviations are added up, and in float over no more than a few hundred pixels.
// Channels go in blocks of kBlock.
class ResultSums {
 public:
  static constexpr int64_t kBlock = 16;

  ResultSums(const Context&, int64_t channels);

  // Where kernels add up the channels from `channel` on for the calling thread: nowhere before its first rows there.
  ColumnSums from(int64_t channel);
  // The calling thread has written `rows` rows of `count` channels from `channel` on, `stride` elements apart from `y`
  // on. Where kernels did not add them up, `to` being nowhere, this does.
  template <class T>
  void wrote(const ColumnSums& to, int64_t channel, int64_t count, int64_t rows, const T* y, int64_t stride);

  int64_t threads() const { return static_cast<int64_t>(own_.size()); }
  PartialSums of(int64_t thread, int64_t channel) const;

 private:
  struct Block {
    int64_t count = 0, pending = 0;  // rows, and those of them whose sums are not in the totals yet
  };
  struct Own {
    std::vector<float> pivot, sum, square;
    std::vector<double> total, total_square;
    std::vector<Block> blocks;
  };
  std::vector<Own> own_;  // of each thread

  Own& mine();
  template <class T>
  static void add_rows(Own&, int64_t channel, int64_t count, int64_t rows, const T* y, int64_t stride);
  static void flush(Own&, int64_t block);
};

}  // namespace dtrain::cpu
