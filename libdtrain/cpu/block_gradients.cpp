#include "libdtrain/cpu/block_gradients.h"

#include "libdtrain/cpu/gathered_conv.h"
#include "libdtrain/cpu/gemm_wgrad.h"
#include "libdtrain/cpu/gradient_phases.h"
#include "libdtrain/cpu/kernels/table.h"
#include "libdtrain/cpu/parallel.h"
#include "libdtrain/cpu/shares.h"

namespace dtrain::cpu {
namespace {

// Filters, and as many sums: of more, passing them through the caches with each block takes what is spared.
constexpr int64_t kMostProducts = 262144;

}  // namespace

bool block_gradients_pay(const Context& context, const ConvShape& o, DType dtype) {
  return reads_pixels_in_order(o) && o.groups == 1 && o.k > o.c && o.c * o.k <= kMostProducts &&
         gathered_dgrad_pays(context, o, dtype) && gemm_wgrad_goes_by_blocks(context, o, dtype);
}

template <class T>
void block_gradients(Context& context, const ConvShape& o, const T* x, const T* w, const BlockSource<T>& dy, float* dw,
                     bool add_dw, T* dx, bool add_dx) {
  constexpr auto kSize = static_cast<int64_t>(sizeof(T));
  const int64_t most = most_pixels_of_block<T>() * o.k;
  const Scratch<T> blocks(context, context.threads() * most);
  const bool streams = is_streamed(o.n * o.h * o.w * o.c, o.c, context.kernels().product.columns, dx);
  for_each_phase<T>(context, o, w, dx, add_dx, [&](const GradientPhase&, const T* panels) {  // there is one
    const auto make = [&](int64_t core, int64_t begin, int64_t end) {
      T *const block = blocks.data() + core * most, *const to = dx + begin * o.c;
      dy.make(begin, end, block);
      multiply_pixels<T>(context,
                         {.pixels = end - begin,
                          .c = o.k,
                          .k = o.c,
                          .x = block,
                          .panels = panels,
                          .end = {.residual = add_dx ? to : nullptr},
                          .y = to,
                          .upcoming = {dy.second + end * o.k, (end - begin) * o.k * kSize}},
                         streams);
      return block;
    };
    gemm_wgrad_by_blocks<T>(context, o, x, {dy.first, make}, dw, add_dw);
  });
}

template void block_gradients(Context&, const ConvShape&, const float*, const float*, const BlockSource<float>&, float*,
                              bool, float*, bool);
template void block_gradients(Context&, const ConvShape&, const Bf16*, const Bf16*, const BlockSource<Bf16>&, float*,
                              bool, Bf16*, bool);

}  // namespace dtrain::cpu
