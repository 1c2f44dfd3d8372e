#include "libdtrain/ops/compute_copy.h"

#include <algorithm>

#include "dtrain/core/dispatch.h"

namespace dtrain {

void round_values(Context& context, const Tensor& x, const Tensor& y) {
  DT_CHECK(x.shape() == y.shape(), "round_values: ", x.shape(), " into ", y.shape());
  DT_DISPATCH(context, round_values)(x, y);
}

void pad_channels(Context& context, const Tensor& x, const Tensor& y) {
  const Shape &from = x.shape(), &to = y.shape();
  DT_CHECK(from.rank() == 4 && to.rank() == 4 && from[0] == to[0] && from[1] == to[1] && from[2] == to[2] &&
               from[3] <= to[3] && to[3] > 0,
           "pad_channels: filters ", from, " into ", to);
  DT_DISPATCH(context, pad_channels)(x, y);
}

namespace cpu {

void round_values(Context&, const Tensor& x, const Tensor& y) {
  // For bf16 y this is an f32 copy, rounded by the dispatcher afterwards.
  std::copy_n(x.data<float>(), x.count(), y.data<float>());
}

void pad_channels(Context&, const Tensor& x, const Tensor& y) {
  const float* from = x.data<float>();
  float* to = y.data<float>();
  const int64_t channels = x.dim(3), padded = y.dim(3);
  for (int64_t tap = 0; tap < y.count() / padded; ++tap, from += channels, to += padded) {
    std::copy_n(from, channels, to);
    std::fill(to + channels, to + padded, 0.0f);
  }
}

}  // namespace cpu
}  // namespace dtrain
