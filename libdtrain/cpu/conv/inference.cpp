#include "libdtrain/cpu/conv/inference.h"

#include "libdtrain/core/context.h"
#include "libdtrain/cpu/conv/implicit_gemm.h"
#include "libdtrain/cpu/conv/winograd.h"
#include "libdtrain/cpu/elements.h"
#include "libdtrain/cpu/threads/scratch.h"

namespace dtrain::cpu {

template <class T>
PackedWeights<T>::PackedWeights(const ConvShape& o, const T* w, std::vector<float> scale)
    : shape_(o), w_(w), scale_(std::move(scale)) {}

template <class T>
float PackedWeights<T>::value(int64_t k, int64_t i) const {
  return w_[k * shape_.r * shape_.s * shape_.c + i] * (scale_.empty() ? 1.0f : scale_[static_cast<size_t>(k)]);
}

template <class T>
const Tensor& PackedWeights<T>::packed(Context& context) {
  const std::lock_guard lock(mutex_);
  if (packed_) return packed_;
  const int64_t filter = shape_.r * shape_.s * shape_.c;
  const Scratch<T> scaled(context, shape_.k * filter);
  for (int64_t k = 0; k < shape_.k; ++k)
    for (int64_t i = 0; i < filter; ++i) scaled.data()[k * filter + i] = to_element<T>(value(k, i));
  packed_ = context.empty({packed_weight_elements<T>(context, shape_)}, dtype_of<T>());
  pack_weights(context, shape_, scaled.data(), packed_.data<T>());
  return packed_;
}

template <class T>
const Tensor& PackedWeights<T>::winograd(Context& context) {
  const std::lock_guard lock(mutex_);
  if (winograd_) return winograd_;
  const int64_t filter = shape_.r * shape_.s * shape_.c;
  const Scratch<float> scaled(context, shape_.k * filter);
  for (int64_t k = 0; k < shape_.k; ++k)
    for (int64_t i = 0; i < filter; ++i) scaled.data()[k * filter + i] = value(k, i);
  winograd_ = winograd_weights(context, shape_.c, shape_.k, scaled.data());
  return winograd_;
}

template class PackedWeights<float>;
template class PackedWeights<Bf16>;

}  // namespace dtrain::cpu
