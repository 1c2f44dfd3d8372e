#include "libdtrain/cpu/conv/bn_fused_grad.h"

#include "dtrain/core/context.h"
#include "libdtrain/cpu/conv/im2col.h"
#include "libdtrain/cpu/conv/implicit_gemm.h"
#include "libdtrain/cpu/gemm/blocking.h"
#include "libdtrain/cpu/gemm/gemm.h"
#include "libdtrain/cpu/gemm/non_temporal.h"
#include "libdtrain/cpu/gemm/packing.h"
#include "libdtrain/cpu/kernels/table.h"
#include "libdtrain/cpu/threads/scratch.h"

namespace dtrain::cpu {
namespace {

// Weights, and as many sums of dw: of more, moving them through the caches with each block costs what is saved.
constexpr int64_t kMaxWeights = 262144;

}  // namespace

const char* bn_fused_grads_declined(const Context& context, const ConvShape& o, DType dtype) {
  const std::string& forced = context.conv_algorithm();
  if (!forced.empty() && forced != "bn_fused_grad") return "another algorithm is forced";
  if (!reads_pixels_in_order(o) || o.groups != 1) return "for 1x1 kernels of stride 1 and one group";
  if (o.k <= o.c) return "dy is no larger than dx";
  if (o.c * o.k > kMaxWeights) return "the weights do not stay in the second-level cache";
  const Verdict dgrad = dtype == DType::bf16 ? ImplicitGemm<Bf16>::dgrad_verdict(context, o)
                                             : ImplicitGemm<float>::dgrad_verdict(context, o);
  if (!dgrad.applies()) return dgrad.reason;
  if (!gemm_tn_reads_rows_once(context, wgrad_shape(o), dtype))
    return "the GEMM of dw does not read each row of dy once";
  return nullptr;
}

template <class T>
void bn_fused_grads(Context& context, const ConvShape& o, const T* x, const T* w, const BlockwiseGradient<T>& dy,
                    float* dw, bool add_dw, T* dx, bool add_dx) {
  constexpr auto kSize = static_cast<int64_t>(sizeof(T));
  const int64_t most = gemm_tn_max_block<T>() * o.k;
  const Scratch<T> blocks(context, context.threads() * most);
  const bool non_temporal =
      stores_past_caches(o.n * o.h * o.w * o.c, o.c, context.kernels().gemm.columns, dx) && non_temporal_stores_pay();
  const Scratch<T> packed_w(context, o.k * o.c);
  pack_rows<T>(
      context, o.c, o.k, [&](int64_t i) { return w + i * o.c; }, packed_w.data());
  const auto make = [&](int64_t thread, int64_t begin, int64_t end) -> const T* {
    T *const block = blocks.data() + thread * most, *const to = dx + begin * o.c;
    dy.make(begin, end, block);
    gemm_on_this_thread<T>(context, strided_matrix<T>(block, end - begin, o.k, o.k), packed_w.data(),
                           {.residual = add_dx ? to : nullptr}, {.data = to, .n = o.c, .non_temporal = non_temporal},
                           {dy.x + end * o.k, (end - begin) * o.k * kSize});
    return block;
  };
  gemm_tn<T>(context, Im2colView<T>{o, x}.matrix(nullptr), {dy.dz, o.k, make}, dw, add_dw);
}

template void bn_fused_grads(Context&, const ConvShape&, const float*, const float*, const BlockwiseGradient<float>&,
                             float*, bool, float*, bool);
template void bn_fused_grads(Context&, const ConvShape&, const Bf16*, const Bf16*, const BlockwiseGradient<Bf16>&,
                             float*, bool, Bf16*, bool);

}  // namespace dtrain::cpu
