#include "libdtrain/train/running_statistics.h"

#include "dtrain/ops/pointwise.h"

namespace dtrain {

std::vector<RunningStatistics::Stretch> RunningStatistics::stretches() const {
  std::vector<Stretch> all;
  const auto& buffers = store_.buffers();
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i].constant()) continue;
    // Up to the next buffer, including padding, so that neighbours merge into one message.
    const int64_t end = i + 1 < buffers.size() ? buffers[i + 1].offset : store_.buffer_values().count();
    if (!all.empty() && all.back().end == buffers[i].offset)
      all.back().end = end;
    else
      all.push_back({buffers[i].offset, end});
  }
  return all;
}

std::vector<Tensor> RunningStatistics::averaged() const {
  std::vector<Tensor> tensors;
  for (const auto& [begin, end] : stretches()) tensors.push_back(store_.buffer_values().slice(begin, end));
  return tensors;
}

void RunningStatistics::begin(int micro_step) {
  Context& context = store_.context();
  const Tensor& buffers = store_.buffer_values();
  if (micro_steps_ == 1 || buffers.count() == 0) return;
  if (!first_) {
    first_ = context.empty(buffers.shape());
    sum_ = context.empty(buffers.shape());
  }
  if (micro_step == 0) return context.copy(buffers, first_);
  if (micro_step == 1)
    context.copy(buffers, sum_);
  else
    accumulate(context, buffers, sum_);
  context.copy(first_, buffers);
}

void RunningStatistics::end() {
  if (micro_steps_ == 1 || store_.buffer_values().count() == 0) return;
  Context& context = store_.context();
  for (const auto& [begin, end] : stretches()) {
    const Tensor values = store_.buffer_values().slice(begin, end);
    accumulate(context, sum_.slice(begin, end), values);
    scale_by(context, values, 1 / static_cast<float>(micro_steps_));
  }
}

void RunningStatistics::divide(int ranks) {
  for (const Tensor& stretch : averaged()) scale_by(store_.context(), stretch, 1 / static_cast<float>(ranks));
}

}  // namespace dtrain
