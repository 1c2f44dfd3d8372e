// Which runs of the images an output pixel of a convolution reads. For images of any type.
#pragma once

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

  // The run that tap `tap` of output pixel (image, p, q) reads.
  const Element* at(const ConvShape& o, int64_t image, int64_t p, int64_t q, int64_t tap) const {
    const int64_t row = p * o.stride_h + tap / taps_wide * o.dilation_h - o.pad_top;
    const int64_t column = q * o.stride_w + tap % taps_wide * o.dilation_w - pad_left;
    const bool inside = row >= 0 && row < h && column >= 0 && column < w;
    return inside ? x + ((image * h + row) * w + column) * c : zeros;
  }
};

// Of images with `o.c` channels, a run for each tap.
template <class Element>
Windows<Element> windows_of(const ConvShape& o, const Element* x, const Element* zeros) {
  return {x, zeros, o.h, o.w, o.c, o.s, o.r * o.s, o.c, o.pad_left};
}

// Whether the pixels of a row of the kernel are read as one run, which takes images whose columns are padded.
inline bool joins_taps(const ConvShape& o) { return o.c < kShortRun && o.s > 1 && o.dilation_w == 1; }
inline int64_t padded_width(const ConvShape& o) { return o.pad_left + o.w + o.pad_right; }

// Of images [n, h, padded_width, c], a run for each row of the kernel.
template <class Element>
Windows<Element> joined_windows_of(const ConvShape& o, const Element* padded, const Element* zeros) {
  return {padded, zeros, o.h, padded_width(o), o.c, 1, o.r, o.s * o.c, 0};
}

// What `count` output pixels from `first` on read: tap t of pixel first + i into at[t * step + i].
template <class Element>
void fill_addresses(const ConvShape& o, const Windows<Element>& x, int64_t first, int64_t count, int64_t step,
                    const Element** at) {
  int64_t image = first / (o.p * o.q), p = first / o.q % o.p, q = first % o.q;
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t tap = 0; tap < x.taps; ++tap) at[tap * step + i] = x.at(o, image, p, q, tap);
    if (++q < o.q) continue;
    q = 0;
    if (++p < o.p) continue;
    p = 0;
    ++image;
  }
}

}  // namespace dtrain::cpu
