// Where each algorithm of algorithms.h applies: the conditions that it computes a shape, and those under which it pays.
#pragma once

#include <optional>
#include <type_traits>

#include "libdtrain/core/context.h"
#include "libdtrain/cpu/conv/conv_shape.h"
#include "libdtrain/cpu/conv/depthwise.h"
#include "libdtrain/cpu/conv/im2col.h"
#include "libdtrain/cpu/conv/sparse_grad.h"
#include "libdtrain/cpu/conv/winograd.h"
#include "libdtrain/cpu/gemm/gemm_tn.h"
#include "libdtrain/cpu/kernels/table.h"
#include "libdtrain/cpu/onednn/run.h"

namespace dtrain::cpu {

// Whether an algorithm is taken for a shape. A slower one, which another in the list beats, can still be forced.
struct Verdict {
  enum class Kind : uint8_t { applies, slower, unsupported };

  Kind kind = Kind::applies;
  const char* reason = nullptr;  // why it does not apply

  static Verdict slower(const char* why) { return {Kind::slower, why}; }
  static Verdict unsupported(const char* why) { return {Kind::unsupported, why}; }
  bool applies() const { return kind == Kind::applies; }
};

// Tiles from which Winograd's transform of the weights pays in each call. In the forward pass native bf16 wins by up to
// a fifth at 256 tiles (14x14x256) and loses by as much at 784 (28x28x128).
inline constexpr int64_t kMinTiles = 24, kMinTilesOverBf16 = 512;
// The same where the transformed weights are kept: they are four times as large as plain ones, eight times those of
// bf16.
template <class T>
inline constexpr int64_t kMinTilesOfPacked = std::is_same_v<T, Bf16> ? 256 : 16;

inline constexpr const char *kNoBf16 = "the instruction set has no dot products of bf16",
                            *kNoAmx = "the instruction set has no AMX", *kGroups = "for one group";

inline const Capabilities& capabilities(const Context& context) { return context.kernels().capabilities; }

inline Verdict depthwise_verdict(const Context&, const ConvShape& o) {
  return depthwise_supports(o) ? Verdict{} : Verdict::unsupported("for as many groups as channels and filters");
}

inline Verdict winograd_verdict(const Context& context, const ConvShape& o, int64_t min_tiles) {
  const std::optional<WinogradShape> shape = winograd_shape(o);
  if (!shape) return Verdict::unsupported("for 3x3 kernels of stride 1 and one group");
  if (!winograd_supports(context, *shape)) return Verdict::unsupported("channels do not fill panels");
  return winograd_pays(*shape, min_tiles) ? Verdict{} : Verdict::slower("too few tiles or channels for the transforms");
}
template <class T>
Verdict winograd_in_training(const Context& context, const ConvShape& o, int64_t min_tiles) {
  const Verdict verdict = winograd_verdict(context, o, min_tiles);
  const bool amx = std::is_same_v<T, Bf16> && capabilities(context).amx;
  return verdict.applies() && amx ? Verdict::slower("AMX is faster than any transform") : verdict;
}
template <class T>
Verdict winograd_forward_verdict(const Context& context, const ConvShape& o) {
  const bool bf16 = std::is_same_v<T, Bf16> && capabilities(context).bf16;
  return winograd_in_training<T>(context, o, bf16 ? kMinTilesOverBf16 : kMinTiles);
}
template <class T>
Verdict winograd_grad_verdict(const Context& context, const ConvShape& o) {
  return winograd_in_training<T>(context, o, kMinTiles);
}
template <class T>
Verdict winograd_inference_verdict(const Context& context, const ConvShape& o) {
  return winograd_in_training<T>(context, o, kMinTilesOfPacked<T>);
}

// A GEMM with runs of `run` elements and n columns: runs are long enough, and at most an eighth of the panels is idle.
inline Verdict gemm_verdict(const Context& context, int64_t run, int64_t n) {
  const int64_t panel = context.kernels().gemm.columns, whole = (n + panel - 1) / panel * panel;
  if (run < kMinRun) return Verdict::slower("channels are few");
  return (whole - n) * 8 <= n ? Verdict{} : Verdict::slower("filters leave much of the last panel idle");
}
template <class T, bool kAmx = false>
Verdict implicit_gemm_forward_verdict(const Context& context, const ConvShape& o) {
  if (o.groups != 1) return Verdict::unsupported(kGroups);
  if (std::is_same_v<T, Bf16> && !capabilities(context).bf16) return Verdict::unsupported(kNoBf16);
  if (kAmx && !capabilities(context).amx) return Verdict::unsupported(kNoAmx);
  return gemm_verdict(context, o.c, o.k);
}
template <class T, bool kAmx = false>
Verdict implicit_gemm_grad_verdict(const Context& context, const ConvShape& o) {
  if (o.groups != 1) return Verdict::unsupported(kGroups);
  if (std::is_same_v<T, Bf16> && !capabilities(context).bf16) return Verdict::unsupported(kNoBf16);
  if (kAmx && !capabilities(context).amx) return Verdict::unsupported(kNoAmx);
  if (o.c % context.kernels().gemm.columns != 0) return Verdict::unsupported("channels do not fill panels");
  if (o.k % kPackFactor<Bf16> != 0) return Verdict::unsupported("for an even number of filters");
  return kAmx ? Verdict{} : gemm_verdict(context, o.k, o.c);
}
inline GemmTnShape wgrad_shape(const ConvShape& o) {
  return {o.n * o.p * o.q, o.r * o.s, o.c, o.k, reads_pixels_in_order(o)};
}
template <class T>
Verdict implicit_gemm_wgrad_verdict(const Context& context, const ConvShape& o) {
  if (o.groups != 1) return Verdict::unsupported(kGroups);
  if (std::is_same_v<T, Bf16> && !capabilities(context).bf16) return Verdict::unsupported(kNoBf16);
  if (!gemm_tn_supports(context, wgrad_shape(o))) return Verdict::unsupported("channels or filters do not fill panels");
  return gemm_tn_pays(context, wgrad_shape(o), dtype_of<T>()) ? Verdict{}
                                                              : Verdict::slower("too few products in a pixel");
}
inline Verdict sparse_verdict(const Context& context, const ConvShape& o) {
  return sparse_grad_supports(context, o) ? Verdict{}
                                          : Verdict::unsupported("too small, or channels do not fill panels");
}
template <class T>
Verdict onednn_verdict(const Context& context, const ConvShape&) {
  const bool can = std::is_same_v<T, float> || onednn_has_bf16(context);
  return can ? Verdict{} : Verdict::unsupported("oneDNN has no bf16 on this instruction set");
}
inline Verdict bf16_verdict(const Context& context, const ConvShape&) {
  return capabilities(context).bf16 ? Verdict{} : Verdict::unsupported(kNoBf16);
}
inline Verdict always(const Context&, const ConvShape&) { return {}; }
inline Verdict amx_verdict(const Context& context, const ConvShape&) {
  return capabilities(context).amx ? Verdict{} : Verdict::unsupported(kNoAmx);
}
inline Verdict no_amx_verdict(const Context& context, const ConvShape&) {
  return capabilities(context).amx ? Verdict::slower("AMX is faster") : Verdict{};
}

}  // namespace dtrain::cpu
