// Space to depth: the layout of repacked images, in which taps of strided convolutions read neighbours.
#pragma once

#include <algorithm>
#include <vector>

#include "libdtrain/cpu/conv/im2col.h"

namespace dtrain::cpu {

// The repacked layout: the pixels of each remainder modulo the strides form a plane (space to depth), so that
// neighbours of the output read neighbours of a plane. Where kernel rows are merged, columns stay together.
struct StridePlanes {
  // Taps (r, s) of one plane start from pixel (row, column) after the first one that is read.
  struct Start {
    int64_t row, column;

    bool operator==(const Start&) const = default;
  };
  int64_t step_h, step_w;          // between the rows and columns of a plane
  int64_t more_rows;               // of a plane than of the output
  bool skips_rows;                 // of the image: no output reads them
  int64_t columns, pixel;          // of a row of a plane, and the elements of one of them
  std::vector<int64_t> offset_of;  // [taps]: elements from the start of the tap's plane
  std::vector<int64_t> plane_of;   // [taps]
  std::vector<Start> starts;       // [planes]

  template <class T>
  explicit StridePlanes(const Im2colView<T>& view) {
    const ConvShape& o = view.o;
    const int64_t reach_h = (o.r - 1) * o.dilation_h, reach_w = (view.taps_w - 1) * o.dilation_w;
    step_h = o.stride_h, step_w = view.merged ? 1 : o.stride_w;
    pixel = view.merged ? o.stride_w * o.c : o.c;
    more_rows = reach_h / step_h;
    skips_rows = reach_h + 1 < step_h;
    columns = o.q + (view.merged ? (view.run_pixels - 1) / o.stride_w : reach_w / step_w);
    for (int64_t r = 0; r < o.r; ++r)
      for (int64_t s = 0; s < view.taps_w; ++s) {
        const int64_t down = r * o.dilation_h, across = s * o.dilation_w;
        plane_of.push_back(plane_from({down % step_h, across % step_w}));
        offset_of.push_back((down / step_h * columns + across / step_w) * pixel);
      }
  }
  int64_t row_elements() const { return columns * pixel * std::ssize(starts); }
  // Elements of the copy for `rows` output rows of one image; at most, where they belong to images of `p` rows.
  int64_t elements(int64_t rows) const { return (rows + more_rows) * row_elements(); }
  int64_t most_elements(int64_t rows, int64_t p) const {
    const int64_t images = (rows + p - 2) / p + 1;
    return (rows + images * more_rows) * row_elements();
  }

 private:
  int64_t plane_from(const Start& start) {
    const auto found = std::find(starts.begin(), starts.end(), start);
    const int64_t number = found - starts.begin();
    if (found == starts.end()) starts.push_back(start);
    return number;
  }
};

}  // namespace dtrain::cpu
