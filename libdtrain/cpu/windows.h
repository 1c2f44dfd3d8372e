// Which runs of the images an output pixel of a convolution reads. For images of any type.
#pragma once

#include <algorithm>
#include <vector>

#include "libdtrain/cpu/direct_conv.h"

namespace dtrain::cpu {

// Runs of channels that are shorter than this are joined along a row of the kernel.
inline constexpr int64_t kShortRun = 16;

// A convolution as sums over `taps` runs of `run` elements each, from rows of images [n, h, w, c].
template <class Element>
struct Windows {
  const Element* x;
  const Element* zeros;  // a run of what padding holds
  int64_t h, w, c;       // of x
  int64_t taps_wide;     // runs of a row of the kernel
  int64_t taps, run;
  int64_t pad_left;  // 0 where x itself holds the padding
};

// Of images with `o.c` channels, a run for each tap.
template <class Element>
Windows<Element> windows_of(const ConvShape& o, const Element* x, const Element* zeros) {
  return {x, zeros, o.h, o.w, o.c, o.s, o.r * o.s, o.c, o.pad_left};
}

// A part of the inner dimension of such sums: elements [element, element + run) of each of the taps [tap, tap + taps).
struct InnerPart {
  int64_t tap, taps, element, run;
  bool begins, ends;  // whether it is the first one, and the last one

  int64_t count() const { return taps * run; }
};

// The inner dimension in at most `most` parts of about the same size: of whole taps, or of the only run.
template <class Element>
std::vector<InnerPart> inner_parts(const Windows<Element>& x, int64_t most) {
  constexpr int64_t kUnit = 32;  // elements of a run that stay together
  const bool by_taps = x.taps > 1;
  const int64_t units = by_taps ? x.taps : std::max<int64_t>(x.run / kUnit, 1),
                count = std::clamp<int64_t>(most, 1, units);
  std::vector<InnerPart> parts;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t begin = units * i / count, end = units * (i + 1) / count;
    const bool ends = i + 1 == count;
    if (by_taps)
      parts.push_back({begin, end - begin, 0, x.run, i == 0, ends});
    else
      parts.push_back({0, x.taps, begin * kUnit, (ends ? x.run : end * kUnit) - begin * kUnit, i == 0, ends});
  }
  return parts;
}

// Whether the pixels of a row of the kernel are read as one run, which takes images whose columns are padded.
inline bool joins_taps(const ConvShape& o) { return o.c < kShortRun && o.s > 1 && o.dilation_w == 1; }
inline int64_t padded_width(const ConvShape& o) { return o.pad_left + o.w + o.pad_right; }

// Of images [n, h, padded_width, c], a run for each row of the kernel.
template <class Element>
Windows<Element> joined_windows_of(const ConvShape& o, const Element* padded, const Element* zeros) {
  return {padded, zeros, o.h, padded_width(o), o.c, 1, o.r, o.s * o.c, 0};
}

// What `count` neighbouring output pixels of a row read at one tap, of which the first reads the run at `column` of the
// row `from` of x. Where `from` is null the row is padding.
template <class Element>
void fill_row_addresses(const ConvShape& o, const Windows<Element>& x, const Element* from, int64_t column,
                        int64_t count, const Element** at) {
  const auto column_of = [&](int64_t i) { return column + i * o.stride_w; };
  int64_t begin = 0, end = from ? count : 0;
  while (begin < end && column_of(begin) < 0) ++begin;
  while (begin < end && column_of(end - 1) >= x.w) --end;
  std::fill_n(at, begin, x.zeros);
  for (int64_t i = begin; i < end; ++i) at[i] = from + column_of(i) * x.c;
  std::fill_n(at + end, count - end, x.zeros);
}

// What `count` output pixels from `first` on read: tap t of pixel first + i into at[t * step + i].
template <class Element>
void fill_addresses(const ConvShape& o, const Windows<Element>& x, int64_t first, int64_t count, int64_t step,
                    const Element** at) {
  int64_t image = first / (o.p * o.q), p = first / o.q % o.p, q = first % o.q;
  for (int64_t done = 0, pixels; done < count; done += pixels) {  // rows of the output
    pixels = std::min(o.q - q, count - done);
    const Element** to = at + done;
    int64_t row = p * o.stride_h - o.pad_top;
    for (int64_t tap = 0; tap < x.taps; tap += x.taps_wide, row += o.dilation_h) {
      const Element* const from = row >= 0 && row < x.h ? x.x + (image * x.h + row) * x.w * x.c : nullptr;
      for (int64_t i = 0; i < x.taps_wide; ++i, to += step)
        fill_row_addresses(o, x, from, q * o.stride_w + i * o.dilation_w - x.pad_left, pixels, to);
    }
    q = 0;
    if (++p < o.p) continue;
    p = 0;
    ++image;
  }
}

}  // namespace dtrain::cpu
