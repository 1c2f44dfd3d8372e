// The layout of repacked images for AMX.
#pragma once

#include <algorithm>
#include <vector>

#include "libdtrain/cpu/conv/amx_gemm.h"

namespace dtrain::cpu {

// Whether output pixel i reads input pixel i alone: no repacking.
inline bool reads_in_order(const TapConv& o) {
  return o.taps.size() == 1 && o.taps[0].row == 0 && o.taps[0].column == 0 && o.run_pixels == 1 && o.stride_h == 1 &&
         o.stride_w == 1 && o.p == o.h && o.q == o.w;
}

// The repacked layout: the pixels of each remainder modulo the strides form a plane (space to depth), so that
// neighbours of the output read neighbours of a plane. Where runs have several pixels, columns stay together.
struct StridePlanes {
  int64_t row, column;             // of the image, the first ones that output pixel (0, 0) reads
  int64_t step_h, step_w;          // between the rows and columns of a plane
  int64_t more_rows;               // of a plane than of the output
  bool skips_rows;                 // of the image: no output reads them
  int64_t columns, pixel;          // of a row of a plane, and the elements of one of them
  std::vector<int64_t> offset_of;  // [taps]: elements from the start of the tap's plane
  std::vector<int64_t> plane_of;   // [taps]
  std::vector<Tap> starts;         // [planes], of those that taps read: from (row, column) on

  explicit StridePlanes(const TapConv& o) {
    const bool joined = o.run_pixels > 1;
    row = o.taps[0].row, column = o.taps[0].column;
    int64_t last_row = row, last_column = column;
    for (const Tap& tap : o.taps) {
      row = std::min(row, tap.row), column = std::min(column, tap.column);
      last_row = std::max(last_row, tap.row), last_column = std::max(last_column, tap.column);
    }
    step_h = o.stride_h, step_w = joined ? 1 : o.stride_w;
    pixel = joined ? o.stride_w * o.c : o.c;
    more_rows = (last_row - row) / step_h;
    skips_rows = last_row - row + 1 < step_h;
    columns = joined ? o.q + (o.run_pixels - 1) / o.stride_w : o.q + (last_column - column) / step_w;
    for (const Tap& tap : o.taps) {
      const int64_t down = tap.row - row, across = tap.column - column;
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
  int64_t plane_from(const Tap& start) {
    const auto is_it = [&](const Tap& one) { return one.row == start.row && one.column == start.column; };
    const auto found = std::find_if(starts.begin(), starts.end(), is_it);
    const int64_t number = found - starts.begin();
    if (found == starts.end()) starts.push_back(start);
    return number;
  }
};

}  // namespace dtrain::cpu
