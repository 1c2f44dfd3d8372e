#include "libdtrain/cpu/result_sums.h"

#include <omp.h>

#include <algorithm>

#include "libdtrain/cpu/elements.h"

namespace dtrain::cpu {
namespace {

// Rows whose sums are made in float.
constexpr int64_t kMostPending = 512;

}  // namespace

ResultSums::ResultSums(const Context& context, int64_t channels) : own_(static_cast<size_t>(context.threads())) {
  DT_CHECK(channels % kBlock == 0, "sums of ", channels, " channels, expected a multiple of ", kBlock);
  const auto size = static_cast<size_t>(channels);
  for (Own& own : own_) {
    for (auto* floats : {&own.pivot, &own.sum, &own.square}) floats->resize(size);
    for (auto* doubles : {&own.mean, &own.deviation}) doubles->resize(size);
    own.blocks.resize(size / kBlock);
  }
}

ResultSums::Own& ResultSums::mine() { return own_[static_cast<size_t>(omp_get_thread_num())]; }

ColumnSums ResultSums::from(int64_t channel) {
  Own& own = mine();
  if (own.blocks[static_cast<size_t>(channel / kBlock)].count == 0) return {};
  return {own.pivot.data() + channel, own.sum.data() + channel, own.square.data() + channel};
}

void ResultSums::added(int64_t channel, int64_t count, int64_t rows) {
  Own& own = mine();
  for (int64_t block = channel / kBlock; block < (channel + count) / kBlock; ++block) {
    int64_t& pending = own.blocks[static_cast<size_t>(block)].pending;
    pending += rows;
    if (pending >= kMostPending) own.merge_sums(static_cast<size_t>(block));
  }
}

template <class T>
void ResultSums::add_rows(int64_t channel, int64_t count, int64_t rows, const T* y, int64_t stride) {
  Own& own = mine();
  for (int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<size_t>(channel + i);
    Moments all = own.of(at);
    for (int64_t row = 0; row < rows; ++row) all = merge(all, {1, y[row * stride + i], 0});
    own.mean[at] = all.mean;
    own.deviation[at] = all.deviation;
    own.pivot[at] = static_cast<float>(all.mean);
  }
  for (int64_t block = channel / kBlock; block < (channel + count) / kBlock; ++block)
    own.blocks[static_cast<size_t>(block)].count += rows;
}

// As of() merges, with the divisions that all channels have in common made once.
void ResultSums::Own::merge_sums(size_t block) {
  auto& [merged, pending] = blocks[block];
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

Moments ResultSums::Own::of(size_t channel) const {
  const auto [count, pending] = blocks[channel / kBlock];
  const Moments merged{static_cast<double>(count), mean[channel], deviation[channel]};
  if (pending == 0) return merged;
  const double rows = static_cast<double>(pending), s = sum[channel];
  return merge(merged, {rows, pivot[channel] + s / rows, std::max(0.0, square[channel] - s * s / rows)});
}

Moments ResultSums::of(int64_t channel) const {
  Moments all;
  for (const Own& own : own_) all = merge(all, own.of(static_cast<size_t>(channel)));
  return all;
}

template void ResultSums::add_rows(int64_t, int64_t, int64_t, const float*, int64_t);
template void ResultSums::add_rows(int64_t, int64_t, int64_t, const Bf16*, int64_t);

}  // namespace dtrain::cpu
