#include "libdtrain/cpu/folded_conv.h"

#include "libdtrain/cpu/elements.h"
#include "libdtrain/cpu/gathered_conv.h"
#include "libdtrain/cpu/kernels/table.h"
#include "libdtrain/cpu/parallel.h"
#include "libdtrain/cpu/winograd.h"

namespace dtrain::cpu {
namespace {

// The transformed filters are there, but are four times as large as the plain ones, or eight times as large as those of
// bf16: they have to be worth reading.
template <class T>
constexpr int64_t kLeastTiles = std::is_same_v<T, Bf16> ? 256 : 16;

}  // namespace

template <class T>
FoldedFilters<T>::FoldedFilters(const ConvShape& o, const T* w, std::vector<float> scale)
    : k_(o.k), taps_(o.r * o.s), c_(o.c), w_(w), scale_(std::move(scale)) {}

template <class T>
float FoldedFilters<T>::value(int64_t k, int64_t tap, int64_t channel) const {
  return w_[(k * taps_ + tap) * c_ + channel] * (scale_.empty() ? 1.0f : scale_[static_cast<size_t>(k)]);
}

template <class T>
const Tensor& FoldedFilters<T>::panels(Context& context) {
  const std::lock_guard lock(mutex_);
  if (panels_) return panels_;
  const int64_t channels = whole_words<T>(c_), inner = taps_ * channels;
  const Tensor scaled = context.zeros({k_ * inner}, dtype_of<T>());
  for (int64_t k = 0; k < k_; ++k)
    for (int64_t tap = 0; tap < taps_; ++tap)
      for (int64_t channel = 0; channel < c_; ++channel)
        scaled.data<T>()[k * inner + tap * channels + channel] = to_element<T>(value(k, tap, channel));
  panels_ = context.empty({panel_elements(context, k_, inner)}, dtype_of<T>());
  pack_panels(context, k_, inner, scaled.data<T>(), panels_.data<T>());
  return panels_;
}

template <class T>
const Tensor& FoldedFilters<T>::winograd(Context& context) {
  const std::lock_guard lock(mutex_);
  if (winograd_) return winograd_;
  const int64_t inner = taps_ * c_;
  const Scratch<float> scaled(context, k_ * inner);
  for (int64_t k = 0; k < k_; ++k)
    for (int64_t i = 0; i < inner; ++i) scaled.data()[k * inner + i] = value(k, i / c_, i % c_);
  winograd_ = winograd_filters(context, c_, k_, scaled.data());
  return winograd_;
}

template <class T>
void folded_conv(Context& context, const ConvShape& o, const T* x, FoldedFilters<T>& filters, const EndOf<T>& end,
                 T* y) {
  // Products by tile registers are faster than any detour, and soon read what they have written.
  const bool direct = std::is_same_v<T, Bf16> && context.kernels().tiles.pairs;
  if (const auto winograd = direct ? std::nullopt : winograd_of(context, o, kLeastTiles<T>))
    winograd_forward(context, *winograd, x, filters.winograd(context), end, y);
  else
    gathered_conv(context, o, x, filters.panels(context).template data<T>(), end, y, !direct);
}

template class FoldedFilters<float>;
template class FoldedFilters<Bf16>;
template void folded_conv(Context&, const ConvShape&, const float*, FoldedFilters<float>&, const EndOf<float>&, float*);
template void folded_conv(Context&, const ConvShape&, const Bf16*, FoldedFilters<Bf16>&, const EndOf<Bf16>&, Bf16*);

}  // namespace dtrain::cpu
