#include "libdtrain/cpu/gradient_phases.h"

#include <algorithm>

#include "libdtrain/cpu/kernels/table.h"
#include "libdtrain/cpu/parallel.h"

namespace dtrain::cpu {
namespace {

// The rows of a kernel that reach the rows of x which are `phase` modulo the stride, and the rows of dy that they come
// from, counted from the row's own. The same of columns.
struct Reach {
  std::vector<int64_t> taps, offsets;  // offsets ascend

  Reach(int64_t phase, int64_t kernel, int64_t stride, int64_t dilation, int64_t pad) {
    for (int64_t tap = kernel; tap-- > 0;) {
      const int64_t distance = phase + pad - tap * dilation;
      if (distance % stride != 0) continue;
      taps.push_back(tap);
      offsets.push_back(distance / stride);
    }
  }
  int64_t count() const { return static_cast<int64_t>(taps.size()); }
  int64_t first() const { return offsets.front(); }
  int64_t step() const { return count() > 1 ? offsets[1] - offsets[0] : 1; }  // all are alike
};

// The pixels of dx at (top, left) modulo the strides; without taps where none reaches them.
GradientPhase phase_of(const ConvShape& o, int64_t top, int64_t left) {
  const Reach down(top, o.r, o.stride_h, o.dilation_h, o.pad_top),
      across(left, o.s, o.stride_w, o.dilation_w, o.pad_left);
  if (down.taps.empty() || across.taps.empty() || top >= o.h || left >= o.w) return {};
  ConvShape conv{};
  conv.n = o.n, conv.h = o.p, conv.w = o.q, conv.c = o.k;
  conv.k = o.c, conv.r = down.count(), conv.s = across.count();
  conv.p = (o.h - top + o.stride_h - 1) / o.stride_h, conv.q = (o.w - left + o.stride_w - 1) / o.stride_w;
  conv.stride_h = conv.stride_w = 1;
  conv.dilation_h = down.step(), conv.dilation_w = across.step();
  conv.pad_top = -down.first(), conv.pad_left = -across.first();
  conv.groups = 1;
  const Places places{(top * o.w + left) * o.c, o.h * o.w * o.c, o.stride_h * o.w * o.c, o.stride_w * o.c};
  return {conv, places, down.taps, across.taps};
}

// The panels of the phase's taps of w [k, r, s, c], turned so that c are the columns: [c / width][taps][k][width], of
// bf16 [c / width][taps][k / 2][width][2].
template <class T>
void pack_turned(const Context& context, const ConvShape& o, const GradientPhase& phase, const T* w, T* panels) {
  const ProductKernels& product = context.kernels().product;
  const int64_t wide = std::ssize(phase.columns), taps = std::ssize(phase.rows) * wide, words = o.k / kJoined<T>;
  const int64_t filter = o.r * o.s * o.c, width = product.columns, step = taps * words * width * kJoined<T>;
  parallel_ranges(
      taps * words,
      [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const int64_t tap = row / words, r = phase.rows[static_cast<size_t>(tap / wide)],
                        s = phase.columns[static_cast<size_t>(tap % wide)];
          const T* const from = w + row % words * kJoined<T> * filter + (r * o.s + s) * o.c;
          T* const to = panels + row * width * kJoined<T>;
          if constexpr (std::is_same_v<T, Bf16>)
            product.join_pairs(from, from + filter, o.c, reinterpret_cast<Bf16Pair*>(to), step / kJoined<T>);
          else
            for (int64_t i = 0; i < o.c; i += width) std::copy_n(from + i, width, to + i / width * step);
        }
      },
      o.c);
}

}  // namespace

template <class T>
void for_each_phase(Context& context, const ConvShape& o, const T* w, T* dx, bool add,
                    const std::function<void(const GradientPhase&, const T* panels)>& convolve) {
  std::vector<GradientPhase> phases;
  for (int64_t top = 0; top < o.stride_h; ++top)
    for (int64_t left = 0; left < o.stride_w; ++left) phases.push_back(phase_of(o, top, left));
  const auto is_reached = [](const GradientPhase& phase) { return !phase.rows.empty(); };
  if (!add && !std::all_of(phases.begin(), phases.end(), is_reached))
    parallel_ranges(o.n * o.h * o.w * o.c, [&](int64_t begin, int64_t end) { std::fill(dx + begin, dx + end, T{}); });
  const Scratch<T> panels(context, o.k * o.r * o.s * o.c);
  for (const GradientPhase& phase : phases) {
    if (!is_reached(phase)) continue;
    pack_turned(context, o, phase, w, panels.data());
    convolve(phase, panels.data());
  }
}

template void for_each_phase(Context&, const ConvShape&, const float*, float*, bool,
                             const std::function<void(const GradientPhase&, const float*)>&);
template void for_each_phase(Context&, const ConvShape&, const Bf16*, Bf16*, bool,
                             const std::function<void(const GradientPhase&, const Bf16*)>&);

}  // namespace dtrain::cpu
