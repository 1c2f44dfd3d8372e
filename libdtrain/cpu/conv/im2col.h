// The images of a convolution as the operand A of an implicit GEMM: the im2col matrix, which is never in memory, by the
// addresses of its runs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "libdtrain/core/context.h"
#include "libdtrain/cpu/conv/conv_shape.h"
#include "libdtrain/cpu/gemm/matrix.h"
#include "libdtrain/cpu/threads/scratch.h"
#include "libdtrain/cpu/threads/work_stealing.h"

namespace dtrain::cpu {

// Runs of channels that are shorter than this are merged along a row of the kernel.
inline constexpr int64_t kMinRun = 16;

// Whether the taps of a kernel row are read as one run, which takes images whose columns are padded.
inline bool merges_kernel_row(const ConvShape& o) { return o.c < kMinRun && o.s > 1 && o.dilation_w == 1; }
inline int64_t padded_width(const ConvShape& o) { return o.pad_left + o.w + o.pad_right; }

// Addresses of the runs that output pixels read.
template <class T>
struct Im2colRows {
  ConvShape o;
  const T* x;      // [n, h, w, c]
  const T* zeros;  // a run of padding
  int64_t w;       // of x
  int64_t taps_h, taps_w;
  int64_t pad_left;  // 0 where x itself holds the padding

  // See MatrixA::fill_indirection.
  void operator()(int64_t first, int64_t count, int64_t step, const T** at) const {
    int64_t image = first / (o.p * o.q), p = first / o.q % o.p, q = first % o.q;
    for (int64_t done = 0, pixels; done < count; done += pixels) {  // rows of the output
      pixels = std::min(o.q - q, count - done);
      const T** to = at + done;
      int64_t row = p * o.stride_h - o.pad_top;
      for (int64_t r = 0; r < taps_h; ++r, row += o.dilation_h) {
        const T* const from = row >= 0 && row < o.h ? x + (image * o.h + row) * w * o.c : nullptr;
        for (int64_t s = 0; s < taps_w; ++s, to += step)
          fill_row(from, q * o.stride_w + s * o.dilation_w - pad_left, pixels, to);
      }
      q = 0;
      if (++p < o.p) continue;
      p = 0;
      ++image;
    }
  }

 private:
  // One tap of `count` neighbours in a row of the output, the first of which reads the run at `column` of the row
  // `from` of x; null: a row of padding.
  void fill_row(const T* from, int64_t column, int64_t count, const T** at) const {
    const auto column_of = [&](int64_t i) { return column + i * o.stride_w; };
    int64_t begin = 0, end = from ? count : 0;
    while (begin < end && column_of(begin) < 0) ++begin;
    while (begin < end && column_of(end - 1) >= w) --end;
    std::fill_n(at, begin, zeros);
    for (int64_t i = begin; i < end; ++i) at[i] = from + column_of(i) * o.c;
    std::fill_n(at + end, count - end, zeros);
  }
};

// Images x [n, h, w, c], a run of c elements for each tap. `zeros`: c elements that stand for padding.
template <class T>
MatrixA<T> im2col(const ConvShape& o, const T* x, const T* zeros) {
  return {o.n * o.p * o.q,
          o.r * o.s,
          o.c,
          o.c,
          o.stride_w * o.c,
          reads_pixels_in_order(o) ? x : nullptr,
          Im2colRows<T>{o, x, zeros, o.w, o.r, o.s, o.pad_left}};
}

// Images [n, h, padded_width, c], a run of s * c elements for each row of the kernel.
template <class T>
MatrixA<T> im2col_of_kernel_rows(const ConvShape& o, const T* padded, const T* zeros) {
  return {o.n * o.p * o.q,
          o.r,
          o.s * o.c,
          o.c,
          o.stride_w * o.c,
          nullptr,
          Im2colRows<T>{o, padded, zeros, padded_width(o), o.r, 1, 0}};
}

// Images whose pixels have `channels` channels, and whose columns are padded where kernel rows are merged; or x itself
// where it is already so.
template <class T>
class PaddedImages {
 public:
  struct Source {
    const T* x;  // null: nothing that can be read as it is
    T padding;   // fills columns, and channels that images lack
    bool may_merge = true;
  };
  // write_pixels(row, to) writes the pixels of row `row` of all images, with all channels.
  template <class WritePixels>
  PaddedImages(const Context& context, const ConvShape& shape, int64_t channels, const Source& source,
               const WritePixels& write_pixels)
      : shape_(with_channels(shape, channels)),
        merged_(source.may_merge && merges_kernel_row(shape_)),
        copied_(!source.x || merged_ || channels != shape.c),
        memory_(context, copied_ ? shape.n * shape.h * width() * channels : 0),
        data_(copied_ ? memory_.data() : source.x) {
    if (!copied_) return;
    const int64_t left = merged_ ? shape.pad_left : 0, right = merged_ ? shape.pad_right : 0;
    parallel_ranges(
        shape.n * shape.h,
        [&](int64_t begin, int64_t end) {
          for (int64_t row = begin; row < end; ++row) {
            T* const to = std::fill_n(memory_.data() + row * width() * channels, left * channels, source.padding);
            write_pixels(row, to);
            std::fill_n(to + shape.w * channels, right * channels, source.padding);
          }
        },
        width() * channels);
  }

  const ConvShape& shape() const { return shape_; }  // c: the channels of the copy
  bool merged() const { return merged_; }
  const T* data() const { return data_; }
  // `zeros`: as many elements as a run has.
  MatrixA<T> matrix(const T* zeros) const {
    return merged_ ? im2col_of_kernel_rows(shape_, data_, zeros) : im2col(shape_, data_, zeros);
  }

 private:
  static ConvShape with_channels(ConvShape o, int64_t channels) {
    o.c = channels;
    return o;
  }
  int64_t width() const { return merged_ ? padded_width(shape_) : shape_.w; }

  ConvShape shape_;
  bool merged_, copied_;
  Scratch<T> memory_;
  const T* data_;
};

}  // namespace dtrain::cpu
