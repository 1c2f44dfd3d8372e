#include "dtrain/ops/concat_channels.h"

#include <algorithm>

#include "dtrain/core/dispatch.h"
#include "libdtrain/cpu/threads/work_stealing.h"
#include "libdtrain/ops/concat_channels_kernels.h"

namespace dtrain {
namespace {

int64_t channels_of(const Tensor& x) { return x.dim(x.shape().rank() - 1); }

// Shape of `x` with `channels`.
Shape with_channels(const Shape& x, int64_t channels) {
  Shape result;
  for (int i = 0; i + 1 < x.rank(); ++i) result.append(x[i]);
  result.append(channels);
  return result;
}

}  // namespace

Var concat_channels(Tape& tape, const std::vector<Var>& parts) {
  DT_CHECK(!parts.empty() && parts[0].shape().rank() >= 1, "concat_channels: expected parts [..., c], found ",
           parts.empty() ? "none" : "a scalar");
  const Tensor& first = parts[0].value;
  int64_t channels = 0;
  std::vector<const Var*> inputs;
  for (const Var& part : parts) {
    DT_CHECK(part.shape().rank() == first.shape().rank() &&
                 with_channels(part.shape(), 0) == with_channels(first.shape(), 0) &&
                 part.value.dtype() == first.dtype(),
             "concat_channels: parts ", first.shape(), " of ", first.dtype(), " and ", part.shape(), " of ",
             part.value.dtype(), "; expected one type, and equal dimensions but the last");
    channels += channels_of(part.value);
    inputs.push_back(&part);
  }
  Context& context = tape.context();
  const Tensor y = context.empty(with_channels(first.shape(), channels), first.dtype());
  struct Slot {
    Var part;
    int64_t begin;  // first channel in y
  };
  std::vector<Slot> slots;
  for (int64_t begin = 0; const Var& part : parts) {
    const int64_t count = channels_of(part.value);
    DT_DISPATCH(context, copy_channels)({part.value, 0, count}, {y, begin, count}, false);
    slots.push_back({part.without_value(), begin});
    begin += count;
  }
  return tape.record("concat_channels", y, inputs, [slots](Tape& t, const Tensor& dy) {
    for (const auto& [part, begin] : slots)
      if (const auto target = t.grad_target(part)) {
        const int64_t count = channels_of(target->dx);
        DT_DISPATCH(t.context(), copy_channels)({dy, begin, count}, {target->dx, 0, count}, target->add);
      }
  });
}

Tensor join_rows(Context& context, const std::vector<Tensor>& parts) {
  DT_CHECK(!parts.empty(), "join_rows: there are no parts");
  int64_t rows = 0, begin = 0;
  for (const Tensor& part : parts) {
    DT_CHECK(part.shape().rank() == 3 && part.dim(0) == parts[0].dim(0) && part.dim(2) == parts[0].dim(2) &&
                 part.dtype() == DType::f32,
             "join_rows: parts ", parts[0].shape(), " and ", part.shape(), " of ", part.dtype(),
             "; expected [n, k, width] of f32 with equal n and width");
    rows += part.dim(1);
  }
  const int64_t n = parts[0].dim(0), width = parts[0].dim(2);
  const Tensor all = context.empty({n, rows * width});
  for (const Tensor& part : parts) {
    const int64_t count = part.dim(1) * width;
    DT_DISPATCH(context, copy_channels)({part.view({n, count}), 0, count}, {all, begin, count}, false);
    begin += count;
  }
  return all.view({n, rows, width});
}

void cpu::copy_channels(Context&, const Channels& from, const Channels& to, bool add) {
  const int64_t from_stride = channels_of(from.tensor), to_stride = channels_of(to.tensor), count = to.count;
  if (to_stride == 0) return;
  const float* const source = from.tensor.data<float>() + from.begin;
  float* const target = to.tensor.data<float>() + to.begin;
  parallel_ranges(
      to.tensor.count() / to_stride,
      [=](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const float* const x = source + row * from_stride;
          float* const y = target + row * to_stride;
          if (!add)
            std::copy_n(x, count, y);
          else
            for (int64_t c = 0; c < count; ++c) y[c] += x[c];
        }
      },
      count);
}

}  // namespace dtrain
