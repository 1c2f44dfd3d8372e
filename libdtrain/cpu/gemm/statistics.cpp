#include "libdtrain/cpu/gemm/statistics.h"

#include <algorithm>

#include "libdtrain/cpu/elements.h"
#include "libdtrain/cpu/threads/work_stealing.h"

namespace dtrain::cpu {
namespace {

// Rows summed in f32, at most.
constexpr int64_t kMostPending = 512;

}  // namespace

FusedStatistics::FusedStatistics(const Context& context, int64_t channels)
    : chunks_(static_cast<size_t>(ChunkedRange::max_count(context.threads()))) {
  DT_CHECK(channels % kBlock == 0, "statistics of ", channels, " channels, expected a multiple of ", kBlock);
  const auto size = static_cast<size_t>(channels);
  for (ChunkStatistics& one : chunks_) {
    for (auto* floats : {&one.pivot, &one.sum, &one.square}) floats->resize(size);
    for (auto* doubles : {&one.mean, &one.deviation}) doubles->resize(size);
    one.blocks.resize(size / kBlock);
  }
}

ColumnStatistics FusedStatistics::accumulators(int64_t chunk, int64_t channel) {
  ChunkStatistics& own = of_chunk(chunk);
  if (own.blocks[static_cast<size_t>(channel / kBlock)].count == 0) return {};
  return {own.pivot.data() + channel, own.sum.data() + channel, own.square.data() + channel};
}

void FusedStatistics::commit_rows(int64_t chunk, int64_t channel, int64_t count, int64_t rows) {
  ChunkStatistics& own = of_chunk(chunk);
  for (int64_t block = channel / kBlock; block < (channel + count) / kBlock; ++block) {
    auto& [merged, pending] = own.blocks[static_cast<size_t>(block)];
    pending += rows;
    // At most as many as the pivot is the mean of: an outlier among the first rows moves it far from the rest.
    if (pending >= std::min(kMostPending, merged)) own.merge_sums(static_cast<size_t>(block));
  }
}

template <class T>
void FusedStatistics::add_rows(int64_t chunk, int64_t channel, int64_t count, int64_t rows, const T* y,
                               int64_t stride) {
  ChunkStatistics& own = of_chunk(chunk);
  if (accumulators(chunk, channel).pivot == nullptr)
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
    own.merge_sums(static_cast<size_t>(block));  // at once: the first value is a poor pivot for many rows
  }
}

// merge() with the divisions that all channels share done once.
void FusedStatistics::ChunkStatistics::merge_sums(size_t block) {
  auto& [merged, pending] = blocks[block];
  if (pending == 0) return;
  const auto before = static_cast<double>(merged), rows = static_cast<double>(pending);
  const double fraction = rows / (before + rows), per_row = 1 / rows;
  for (size_t i = block * kBlock; i < (block + 1) * kBlock; ++i) {
    const double difference = sum[i] * per_row, shift = pivot[i] + difference - mean[i];
    mean[i] += shift * fraction;
    deviation[i] += std::max(0.0, square[i] - sum[i] * difference) + shift * shift * before * fraction;
    pivot[i] = static_cast<float>(mean[i]);
    sum[i] = square[i] = 0;
  }
  merged += pending;
  pending = 0;
}

Moments FusedStatistics::moments(int64_t channel) {
  const auto i = static_cast<size_t>(channel);
  Moments all;
  for (ChunkStatistics& one : chunks_) {
    one.merge_sums(i / kBlock);
    all = merge(all, {static_cast<double>(one.blocks[i / kBlock].count), one.mean[i], one.deviation[i]});
  }
  return all;
}

template void FusedStatistics::add_rows(int64_t, int64_t, int64_t, int64_t, const float*, int64_t);
template void FusedStatistics::add_rows(int64_t, int64_t, int64_t, int64_t, const Bf16*, int64_t);

}  // namespace dtrain::cpu
