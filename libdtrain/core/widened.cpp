#include "dtrain/core/widened.h"

#include <algorithm>

namespace dtrain {
namespace {

// Block size of compare and round: compilers vectorise both loops.
constexpr int64_t kBlock = 256;

// Rounds elements [begin, end) back if one has changed. Compares bits, since a NaN differs from itself.
void give_back_block(const float* from, Bf16* to, int64_t begin, int64_t end) {
  uint32_t changed = 0;
  for (int64_t i = begin; i < end; ++i)
    changed |= std::bit_cast<uint32_t>(from[i]) ^ static_cast<uint32_t>(to[i].bits) << 16;
  if (changed == 0) return;
  for (int64_t i = begin; i < end; ++i) to[i] = to_bf16(from[i]);
}

}  // namespace

Tensor WidenedTensors::stand_in(const Tensor& x) {
  if (!x || x.dtype() != DType::bf16) return x;
  const auto known = std::ranges::find_if(
      pairs_, [&](const Pair& pair) { return pair.narrow.raw() == x.raw() && pair.narrow.count() == x.count(); });
  if (known != pairs_.end()) return known->wide.view(x.shape());
  const Tensor wide = context_.empty(x.shape());
  const Bf16* const from = x.data<Bf16>();
  float* const to = wide.data<float>();
#pragma omp parallel for simd num_threads(context_.threads())
  for (int64_t i = 0; i < x.count(); ++i) to[i] = from[i];
  pairs_.push_back({x, wide});
  return wide;
}

void WidenedTensors::give_back() {
  for (const Pair& pair : pairs_) {
    const float* const from = pair.wide.data<float>();
    Bf16* const to = pair.narrow.data<Bf16>();
    const int64_t count = pair.wide.count();
#pragma omp parallel for num_threads(context_.threads())
    for (int64_t block = 0; block < count; block += kBlock)
      give_back_block(from, to, block, std::min(block + kBlock, count));
  }
}

}  // namespace dtrain
