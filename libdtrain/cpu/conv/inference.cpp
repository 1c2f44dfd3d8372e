#include "libdtrain/cpu/conv/inference.h"

#include "dtrain/core/context.h"
#include "libdtrain/cpu/conv/implicit_gemm.h"
#include "libdtrain/cpu/conv/winograd.h"
#include "libdtrain/cpu/elements.h"

namespace dtrain::cpu {

template <class T>
PackedWeights<T>::PackedWeights(const ConvShape& o, const T* w, std::vector<float> scale)
    : shape_(o), w_(w), scale_(std::move(scale)) {}

template <class T>
template <class To>
Scratch<To> PackedWeights<T>::scaled(const Context& context) const {
  const int64_t filter = shape_.r * shape_.s * shape_.c;
  Scratch<To> weights(context, shape_.k * filter);
  for (int64_t k = 0; k < shape_.k; ++k) {
    const float scale = scale_.empty() ? 1.0f : scale_[static_cast<size_t>(k)];
    for (int64_t i = k * filter; i < (k + 1) * filter; ++i) weights.data()[i] = to_element<To>(w_[i] * scale);
  }
  return weights;
}

template <class T>
const Tensor& PackedWeights<T>::packed(Context& context) {
  const std::lock_guard lock(mutex_);
  if (!packed_) packed_ = pack_weights<T>(context, shape_, scaled<T>(context).data());
  return packed_;
}

template <class T>
const Tensor& PackedWeights<T>::winograd(Context& context) {
  const std::lock_guard lock(mutex_);
  if (!winograd_) winograd_ = winograd_weights(context, shape_.c, shape_.k, scaled<float>(context).data());
  return winograd_;
}

template class PackedWeights<float>;
template class PackedWeights<Bf16>;

}  // namespace dtrain::cpu
