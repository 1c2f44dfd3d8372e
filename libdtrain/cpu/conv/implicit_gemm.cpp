#include "libdtrain/cpu/conv/implicit_gemm.h"

#include <algorithm>

#include "libdtrain/cpu/conv/amx_gemm.h"
#include "libdtrain/cpu/conv/im2col.h"
#include "libdtrain/cpu/gemm/blocking.h"
#include "libdtrain/cpu/gemm/gemm.h"
#include "libdtrain/cpu/gemm/non_temporal.h"
#include "libdtrain/cpu/gemm/packing.h"
#include "libdtrain/cpu/kernels/table.h"

namespace dtrain::cpu {
namespace {

template <class T, bool kAmx>
Verdict isa_verdict(const Context& context, const ConvShape& o) {
  const Capabilities& capabilities = context.kernels().capabilities;
  if (o.groups != 1) return Verdict::unsupported(kGroups);
  if (kAmx && !capabilities.amx) return Verdict::unsupported(kNoAmx);
  if (std::is_same_v<T, Bf16> && !capabilities.bf16) return Verdict::unsupported(kNoBf16);
  return {};
}

// A GEMM with runs of `run` elements and n columns: runs are long enough, and at most an eighth of the panels is idle.
Verdict gemm_verdict(const Context& context, int64_t run, int64_t n) {
  const int64_t panel = context.kernels().gemm.columns, whole = (n + panel - 1) / panel * panel;
  if (run < kMinRun) return Verdict::slower("too few channels for the inner dimension of a GEMM");
  return (whole - n) * 8 <= n ? Verdict{} : Verdict::slower("filters leave much of the last panel idle");
}

// y = epilogue(x * packed_w). A large y is written past the caches if it `may_bypass_caches`.
template <class T, bool kAmx>
void implicit_gemm(Context& context, const ConvShape& o, const T* x, const Tensor& packed_w,
                   const Epilogue<T>& epilogue, T* y, FusedStatistics* statistics, bool may_bypass_caches) {
  const int64_t channels = round_up_to_pack<T>(o.c);
  const PaddedImages<T> images(context, o, channels, {x, T{}}, [&](int64_t row, T* to) {
    widen_pixels(x + row * o.w * o.c, o.w, o.c, channels, T{}, to);
  });
  const bool past_caches =
      may_bypass_caches && stores_past_caches(o.n * o.p * o.q * o.k, o.k, context.kernels().gemm.columns, y);
  if constexpr (kAmx) {
    amx_implicit_gemm(context, images.view(), OutputLayout::in_order(o), packed_w.data<T>(), epilogue, y, past_caches,
                      statistics);
  } else {
    const Tensor zeros = context.zeros({o.s * channels}, dtype_of<T>());
    gemm(context, images.view().matrix(zeros.data<T>()), packed_w.data<T>(), epilogue,
         {.data = y, .n = o.k, .non_temporal = past_caches && non_temporal_stores_pay()}, statistics);
  }
}

// Along one axis of the data gradient: the taps of the kernel that reach the cells of x which are `phase` modulo the
// stride, and the cells of dy that they read, relative to the cell's own.
struct PhaseTaps {
  std::vector<int64_t> taps, offsets;  // offsets ascend

  PhaseTaps(int64_t phase, int64_t kernel, int64_t stride, int64_t dilation, int64_t pad) {
    for (int64_t tap = kernel; tap-- > 0;) {
      const int64_t distance = phase + pad - tap * dilation;
      if (distance % stride != 0) continue;
      taps.push_back(tap);
      offsets.push_back(distance / stride);
    }
  }
  int64_t count() const { return std::ssize(taps); }
  int64_t step() const { return count() > 1 ? offsets[1] - offsets[0] : 1; }  // all are alike
};

// The data gradient of a strided convolution as stride-1 convolutions of dy: one for each phase, the pixels of dx with
// equal rows and columns modulo the strides. A phase is reached by the same taps of the kernel, from neighbours in dy.
struct DgradPhase {
  ConvShape conv;                      // from dy, of k channels, to the phase's pixels, of c
  OutputLayout layout;                 // of those pixels in dx
  std::vector<int64_t> rows, columns;  // of the kernel, in the order of the taps of `conv`

  bool is_reached() const { return !rows.empty(); }
};

// The pixels of dx at (top, left) modulo the strides; without taps where none reaches them.
DgradPhase phase_of(const ConvShape& o, int64_t top, int64_t left) {
  const PhaseTaps down(top, o.r, o.stride_h, o.dilation_h, o.pad_top),
      across(left, o.s, o.stride_w, o.dilation_w, o.pad_left);
  if (down.taps.empty() || across.taps.empty() || top >= o.h || left >= o.w) return {};
  ConvShape conv{};
  conv.n = o.n, conv.h = o.p, conv.w = o.q, conv.c = o.k;
  conv.k = o.c, conv.r = down.count(), conv.s = across.count();
  conv.p = (o.h - top + o.stride_h - 1) / o.stride_h, conv.q = (o.w - left + o.stride_w - 1) / o.stride_w;
  conv.stride_h = conv.stride_w = 1;
  conv.dilation_h = down.step(), conv.dilation_w = across.step();
  conv.pad_top = -down.offsets.front(), conv.pad_left = -across.offsets.front();
  conv.groups = 1;
  const OutputLayout layout{(top * o.w + left) * o.c, o.h * o.w * o.c, o.stride_h * o.w * o.c, o.stride_w * o.c};
  return {conv, layout, down.taps, across.taps};
}

// Packs the weights of a phase: B [taps * k, c], whose rows are pixels of w [k, r, s, c].
template <class T>
void pack_phase(const Context& context, const ConvShape& o, const DgradPhase& phase, const T* w, T* packed) {
  const int64_t taps_w = std::ssize(phase.columns), depth = std::ssize(phase.rows) * taps_w * o.k;
  const auto row = [&](int64_t i) -> const T* {
    const int64_t tap = i / o.k, r = phase.rows[static_cast<size_t>(tap / taps_w)],
                  s = phase.columns[static_cast<size_t>(tap % taps_w)];
    return w + ((i % o.k * o.r + r) * o.s + s) * o.c;
  };
  pack_rows<T>(context, o.c, depth, row, packed);
}

std::vector<int64_t> offsets_of_pixels(const ConvShape& o, const OutputLayout& layout) {
  std::vector<int64_t> offsets;
  offsets.reserve(static_cast<size_t>(o.n * o.p * o.q));
  for (int64_t image = 0; image < o.n; ++image)
    for (int64_t i = 0; i < o.p; ++i)
      for (int64_t j = 0; j < o.q; ++j)
        offsets.push_back(layout.first + image * layout.image + i * layout.row + j * layout.pixel);
  return offsets;
}

template <class T, bool kAmx>
void convolve_phase(Context& context, const DgradPhase& phase, const T* dy, const T* packed_w, T* dx, bool add,
                    int64_t dx_elements) {
  const ConvShape& o = phase.conv;
  const Epilogue<T> epilogue{.residual = add ? dx : nullptr};
  if constexpr (kAmx) {
    amx_implicit_gemm(context, {o, dy}, phase.layout, packed_w, epilogue, dx, false);
  } else {
    const Tensor zeros = context.zeros({o.c}, dtype_of<T>());
    MatrixC<T> c{.data = dx, .n = o.k};
    if (phase.layout == OutputLayout::in_order(o))
      c.non_temporal =
          stores_past_caches(dx_elements, o.k, context.kernels().gemm.columns, dx) && non_temporal_stores_pay();
    else
      c.row_offsets = offsets_of_pixels(o, phase.layout);
    gemm(context, Im2colView<T>{o, dy}.matrix(zeros.data<T>()), packed_w, epilogue, c);
  }
}

}  // namespace

template <class T>
Tensor pack_weights(Context& context, const ConvShape& o, const T* w) {
  const int64_t channels = round_up_to_pack<T>(o.c), pixels = o.k * o.r * o.s, depth = o.r * o.s * channels;
  const Scratch<T> widened(context, channels == o.c ? 0 : pixels * channels);
  if (channels != o.c) widen_pixels(w, pixels, o.c, channels, T{}, widened.data());
  const Tensor packed = context.empty({packed_elements(context, o.k, depth)}, dtype_of<T>());
  pack_transposed(context, o.k, depth, channels == o.c ? w : widened.data(), packed.data<T>());
  return packed;
}

GemmTnShape wgrad_shape(const ConvShape& o) { return {o.n * o.p * o.q, o.r * o.s, o.c, o.k, reads_pixels_in_order(o)}; }

template <class T, bool kAmx>
Verdict ImplicitGemm<T, kAmx>::forward_verdict(const Context& context, const ConvShape& o) {
  const Verdict verdict = isa_verdict<T, kAmx>(context, o);
  return verdict.applies() ? gemm_verdict(context, o.c, o.k) : verdict;
}

template <class T, bool kAmx>
Verdict ImplicitGemm<T, kAmx>::dgrad_verdict(const Context& context, const ConvShape& o) {
  const Verdict verdict = isa_verdict<T, kAmx>(context, o);
  if (!verdict.applies()) return verdict;
  if (o.c % context.kernels().gemm.columns != 0) return Verdict::unsupported(kPartialPanels);
  if (o.k % kPackFactor<Bf16> != 0) return Verdict::unsupported("for an even number of filters");
  return kAmx ? Verdict{} : gemm_verdict(context, o.k, o.c);
}

template <class T, bool kAmx>
Verdict ImplicitGemm<T, kAmx>::wgrad_verdict(const Context& context, const ConvShape& o) {
  const Verdict verdict = isa_verdict<T, kAmx>(context, o);
  if (!verdict.applies()) return verdict;
  if (!gemm_tn_supports(context, wgrad_shape(o))) return Verdict::unsupported(kPartialPanels);
  const bool pays = gemm_tn_pays(context, wgrad_shape(o), dtype_of<T>());
  return pays ? Verdict{} : Verdict::slower("the GEMM is too small to amortise packing");
}

template <class T, bool kAmx>
void ImplicitGemm<T, kAmx>::forward(Context& context, const ConvShape& o, const ConvOperands<T>& a) {
  implicit_gemm<T, kAmx>(context, o, a.x, pack_weights(context, o, a.w), {.bias = a.bias}, a.y, a.statistics, true);
}

// The output of AMX is soon read again: it stays in the caches.
template <class T, bool kAmx>
void ImplicitGemm<T, kAmx>::inference(Context& context, const ConvShape& o, const InferenceOperands<T>& a) {
  implicit_gemm<T, kAmx>(context, o, a.x, a.weights->packed(context), a.epilogue, a.y, nullptr, !kAmx);
}

// Pixels of dx that no tap reaches become zero, unless gradients are added to them.
template <class T, bool kAmx>
void ImplicitGemm<T, kAmx>::dgrad(Context& context, const ConvShape& o, const ConvOperands<T>& a) {
  const int64_t dx_elements = o.n * o.h * o.w * o.c;
  std::vector<DgradPhase> phases;
  for (int64_t top = 0; top < o.stride_h; ++top)
    for (int64_t left = 0; left < o.stride_w; ++left) phases.push_back(phase_of(o, top, left));
  if (!a.add && !std::ranges::all_of(phases, &DgradPhase::is_reached)) zero_elements(a.dx, dx_elements);
  const Scratch<T> packed(context, o.k * o.r * o.s * o.c);
  for (const DgradPhase& phase : phases) {
    if (!phase.is_reached()) continue;
    pack_phase(context, o, phase, a.w, packed.data());
    convolve_phase<T, kAmx>(context, phase, a.dy, packed.data(), a.dx, a.add, dx_elements);
  }
}

template <class T, bool kAmx>
void ImplicitGemm<T, kAmx>::wgrad(Context& context, const ConvShape& o, const ConvOperands<T>& a) {
  const Tensor zeros = context.zeros({o.c}, dtype_of<T>());
  gemm_tn<T>(context, Im2colView<T>{o, a.x}.matrix(zeros.data<T>()), {a.dy, o.k}, a.dw, a.add, kAmx);
}

template struct ImplicitGemm<float>;
template struct ImplicitGemm<Bf16>;
template struct ImplicitGemm<Bf16, true>;
template Tensor pack_weights(Context&, const ConvShape&, const float*);
template Tensor pack_weights(Context&, const ConvShape&, const Bf16*);

}  // namespace dtrain::cpu
