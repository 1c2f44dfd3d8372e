#include "libdtrain/cpu/result_sums.h"

#include <algorithm>

#include "libdtrain/cpu/elements.h"
#include "libdtrain/cpu/parallel.h"

namespace dtrain::cpu {
namespace {

// Rows whose sums are made in float, at most.
constexpr int64_t kMostPending = 512;

}  // namespace

ResultSums::ResultSums(const Context& context, int64_t channels)
    : own_(static_cast<size_t>(WorkShares::most(context.threads()))) {
  DT_CHECK(channels % kBlock == 0, "sums of ", channels, " channels, expected a multiple of ", kBlock);
  const auto size = static_cast<size_t>(channels);
  for (Own& own : own_) {
    for (auto* floats : {&own.pivot, &own.sum, &own.square}) floats->resize(size);
    for (auto* doubles : {&own.mean, &own.deviation}) doubles->resize(size);
    own.blocks.resize(size / kBlock);
  }
}

ColumnSums ResultSums::from(int64_t share, int64_t channel) {
  Own& own = of_share(share);
  if (own.blocks[static_cast<size_t>(channel / kBlock)].count == 0) return {};
  return {own.pivot.data() + channel, own.sum.data() + channel, own.square.data() + channel};
}

void ResultSums::added(int64_t share, int64_t channel, int64_t count, int64_t rows) {
  Own& own = of_share(share);
  for (int64_t block = channel / kBlock; block < (channel + count) / kBlock; ++block) {
    auto& [merged, pending] = own.blocks[static_cast<size_t>(block)];
    pending += rows;
    // No more of them than those the pivot is the mean of: an outlier among the first moves it far from the rest.
    if (pending >= std::min(kMostPending, merged)) own.merge_sums(static_cast<size_t>(block));
  }
}

template <class T>
void ResultSums::add_rows(int64_t share, int64_t channel, int64_t count, int64_t rows, const T* y, int64_t stride) {
  Own& own = of_share(share);
  if (from(share, channel).pivot == nullptr)
    for (int64_t i = 0; i < count; ++i) own.pivot[static_cast<size_t>(channel + i)] = y[i];
  float *const sum = own.sum.data() + channel, *const square = own.square.data() + channel;
  const float* const pivot = own.pivot.data() + channel;
  for (int64_t row = 0; row < rows; ++row, y += stride)
    for (int64_t i = 0; i < count; ++i) {
      const float d = y[i] - pivot[i];
      sum[i] += d;
      square[i] += d * d;
    }
  for (int64_t block = channel / kBlock; block < (channel + count) / kBlock; ++block) {
    own.blocks[static_cast<size_t>(block)].pending += rows;
    own.merge_sums(static_cast<size_t>(block));  // at once: a first value is no pivot for many rows
  }
}

// As merge() does, with the divisions that all channels have in common made once.
void ResultSums::Own::merge_sums(size_t block) {
  auto& [merged, pending] = blocks[block];
  if (pending == 0) return;
  const auto before = static_cast<double>(merged), rows = static_cast<double>(pending);
  const double share = rows / (before + rows), per_row = 1 / rows;
  for (size_t i = block * kBlock; i < (block + 1) * kBlock; ++i) {
    const double difference = sum[i] * per_row, shift = pivot[i] + difference - mean[i];
    mean[i] += shift * share;
    deviation[i] += std::max(0.0, square[i] - sum[i] * difference) + shift * shift * before * share;
    pivot[i] = static_cast<float>(mean[i]);
    sum[i] = square[i] = 0;
  }
  merged += pending;
  pending = 0;
}

Moments ResultSums::of(int64_t channel) {
  const auto i = static_cast<size_t>(channel);
  Moments all;
  for (Own& own : own_) {
    own.merge_sums(i / kBlock);
    all = merge(all, {static_cast<double>(own.blocks[i / kBlock].count), own.mean[i], own.deviation[i]});
  }
  return all;
}

template void ResultSums::add_rows(int64_t, int64_t, int64_t, int64_t, const float*, int64_t);
template void ResultSums::add_rows(int64_t, int64_t, int64_t, int64_t, const Bf16*, int64_t);

}  // namespace dtrain::cpu
