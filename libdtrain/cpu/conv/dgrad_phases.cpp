#include "libdtrain/cpu/conv/dgrad_phases.h"

#include <algorithm>

#include "libdtrain/core/context.h"
#include "libdtrain/cpu/gemm/packing.h"
#include "libdtrain/cpu/threads/scratch.h"
#include "libdtrain/cpu/threads/work_stealing.h"

namespace dtrain::cpu {
namespace {

// Along one axis: the taps of the kernel that reach the cells of x which are `phase` modulo the stride, and the cells
// of dy that they read, relative to the cell's own.
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
  int64_t count() const { return static_cast<int64_t>(taps.size()); }
  int64_t first() const { return offsets.front(); }
  int64_t step() const { return count() > 1 ? offsets[1] - offsets[0] : 1; }  // all are alike
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
  conv.pad_top = -down.first(), conv.pad_left = -across.first();
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

}  // namespace

template <class T>
void for_each_phase(Context& context, const ConvShape& o, const T* w, T* dx, bool add,
                    const std::function<void(const DgradPhase&, const T* packed_w)>& convolve) {
  std::vector<DgradPhase> phases;
  for (int64_t top = 0; top < o.stride_h; ++top)
    for (int64_t left = 0; left < o.stride_w; ++left) phases.push_back(phase_of(o, top, left));
  const auto is_reached = [](const DgradPhase& phase) { return !phase.rows.empty(); };
  if (!add && !std::all_of(phases.begin(), phases.end(), is_reached))
    parallel_ranges(o.n * o.h * o.w * o.c, [&](int64_t begin, int64_t end) { std::fill(dx + begin, dx + end, T{}); });
  const Scratch<T> packed(context, o.k * o.r * o.s * o.c);
  for (const DgradPhase& phase : phases) {
    if (!is_reached(phase)) continue;
    pack_phase(context, o, phase, w, packed.data());
    convolve(phase, packed.data());
  }
}

template void for_each_phase(Context&, const ConvShape&, const float*, float*, bool,
                             const std::function<void(const DgradPhase&, const float*)>&);
template void for_each_phase(Context&, const ConvShape&, const Bf16*, Bf16*, bool,
                             const std::function<void(const DgradPhase&, const Bf16*)>&);

}  // namespace dtrain::cpu
