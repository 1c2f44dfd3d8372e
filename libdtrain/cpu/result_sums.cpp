#include "libdtrain/cpu/result_sums.h"

#include <omp.h>

#include "libdtrain/cpu/elements.h"

namespace dtrain::cpu {
namespace {

// Rows whose sums are made in float.
constexpr int64_t kMostPending = 256;

}  // namespace

ResultSums::ResultSums(const Context& context, int64_t channels) : own_(static_cast<size_t>(context.threads())) {
  DT_CHECK(channels % kBlock == 0, "sums of ", channels, " channels, expected a multiple of ", kBlock);
  const auto size = static_cast<size_t>(channels);
  for (Own& own : own_) {
    for (auto* floats : {&own.pivot, &own.sum, &own.square}) floats->resize(size);
    for (auto* doubles : {&own.total, &own.total_square}) doubles->resize(size);
    own.blocks.resize(static_cast<size_t>(channels / kBlock));
  }
}

ResultSums::Own& ResultSums::mine() { return own_[static_cast<size_t>(omp_get_thread_num())]; }

ColumnSums ResultSums::from(int64_t channel) {
  Own& own = mine();
  if (own.blocks[static_cast<size_t>(channel / kBlock)].count == 0) return {};
  return {own.pivot.data() + channel, own.sum.data() + channel, own.square.data() + channel};
}

template <class T>
void ResultSums::wrote(const ColumnSums& to, int64_t channel, int64_t count, int64_t rows, const T* y, int64_t stride) {
  Own& own = mine();
  if (to.pivot == nullptr) add_rows(own, channel, count, rows, y, stride);
  for (int64_t block = channel / kBlock; block < (channel + count) / kBlock; ++block) {
    Block& sums = own.blocks[static_cast<size_t>(block)];
    sums.count += rows;
    sums.pending += rows;
    if (sums.pending >= kMostPending) flush(own, block);
  }
}

template <class T>
void ResultSums::add_rows(Own& own, int64_t channel, int64_t count, int64_t rows, const T* y, int64_t stride) {
  for (int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<size_t>(channel + i);
    if (own.blocks[at / kBlock].count == 0) own.pivot[at] = y[i];
    for (int64_t row = 0; row < rows; ++row) {
      const float d = y[row * stride + i] - own.pivot[at];
      own.sum[at] += d;
      own.square[at] += d * d;
    }
  }
}

void ResultSums::flush(Own& own, int64_t block) {
  own.blocks[static_cast<size_t>(block)].pending = 0;
  for (auto i = static_cast<size_t>(block * kBlock); i < static_cast<size_t>((block + 1) * kBlock); ++i) {
    own.total[i] += own.sum[i];
    own.total_square[i] += own.square[i];
    own.sum[i] = own.square[i] = 0;
  }
}

PartialSums ResultSums::of(int64_t thread, int64_t channel) const {
  const Own& own = own_[static_cast<size_t>(thread)];
  const auto i = static_cast<size_t>(channel);
  return {own.pivot[i], own.total[i] + own.sum[i], own.total_square[i] + own.square[i],
          static_cast<double>(own.blocks[i / kBlock].count)};
}

template void ResultSums::wrote(const ColumnSums&, int64_t, int64_t, int64_t, const float*, int64_t);
template void ResultSums::wrote(const ColumnSums&, int64_t, int64_t, int64_t, const Bf16*, int64_t);

}  // namespace dtrain::cpu
