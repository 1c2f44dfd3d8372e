// The images of a convolution as the operand A of an implicit GEMM: the im2col matrix, which is never in memory, by the
// addresses of its runs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "dtrain/core/context.h"
#include "libdtrain/cpu/conv/conv_shape.h"
#include "libdtrain/cpu/gemm/matrix.h"
#include "libdtrain/cpu/threads/scratch.h"
#include "libdtrain/cpu/threads/work_stealing.h"

namespace dtrain::cpu {

// Runs of channels that are shorter than this are merged along a row of the kernel.
inline constexpr int64_t kMinRun = 16;

// The im2col matrix of images x [n, h, w, c]: a run of channels for each tap; or, `merged`, a run for each row of the
// kernel, of images x [n, h, pad_left + w + pad_right, c].
template <class T>
struct Im2colView {
  ConvShape o;
  const T* x;
  bool merged = false;
  int64_t width = merged ? o.pad_left + o.w + o.pad_right : o.w;  // of x
  int64_t pad_left = merged ? 0 : o.pad_left;                     // that x lacks
  int64_t taps_w = merged ? 1 : o.s, run_pixels = merged ? o.s : 1;

  int64_t taps() const { return o.r * taps_w; }
  int64_t run() const { return run_pixels * o.c; }

  // `zeros`: a run of elements that stand for padding.
  MatrixA<T> matrix(const T* zeros) const {
    return {o.n * o.p * o.q,
            taps(),
            run(),
            o.c,
            o.stride_w * o.c,
            reads_pixels_in_order(o) ? x : nullptr,
            [view = *this, zeros](int64_t first, int64_t count, int64_t step, const T** at) {
              view.fill_indirection(zeros, first, count, step, at);
            }};
  }

 private:
  // See MatrixA::fill_indirection.
  void fill_indirection(const T* zeros, int64_t first, int64_t count, int64_t step, const T** at) const {
    int64_t image = first / (o.p * o.q), p = first / o.q % o.p, q = first % o.q;
    for (int64_t done = 0, pixels; done < count; done += pixels) {  // rows of the output
      pixels = std::min(o.q - q, count - done);
      const T** to = at + done;
      int64_t row = p * o.stride_h - o.pad_top;
      for (int64_t r = 0; r < o.r; ++r, row += o.dilation_h) {
        const T* const from = row >= 0 && row < o.h ? x + (image * o.h + row) * width * o.c : nullptr;
        for (int64_t s = 0; s < taps_w; ++s, to += step)
          fill_row(from, zeros, q * o.stride_w + s * o.dilation_w - pad_left, pixels, to);
      }
      q = 0;
      if (++p < o.p) continue;
      p = 0;
      ++image;
    }
  }

  // One tap of `count` neighbours in a row of the output, the first of which reads the run at `column` of the row
  // `from` of x; null: a row of padding.
  void fill_row(const T* from, const T* zeros, int64_t column, int64_t count, const T** at) const {
    const auto column_of = [&](int64_t i) { return column + i * o.stride_w; };
    int64_t begin = 0, end = from ? count : 0;
    while (begin < end && column_of(begin) < 0) ++begin;
    while (begin < end && column_of(end - 1) >= width) --end;
    std::fill_n(at, begin, zeros);
    for (int64_t i = begin; i < end; ++i) at[i] = from + column_of(i) * o.c;
    std::fill_n(at + end, count - end, zeros);
  }
};

// Copies `count` pixels of c channels to pixels of `channels`, those beyond c being `padding`. `to` may overlap `from`
// as long as writes do not overtake reads.
template <class T>
void widen_pixels(const T* from, int64_t count, int64_t c, int64_t channels, T padding, T* to) {
  auto widen = [=](auto used, auto all) mutable {
    for (int64_t i = 0; i < count; ++i, from += used, to += all) {
      for (int64_t j = 0; j < used; ++j) to[j] = from[j];
      for (int64_t j = used; j < all; ++j) to[j] = padding;
    }
  };
  if (channels == c)
    std::copy_n(from, count * c, to);
  else if (c == 3 && channels == 4)  // colours: with constant trip counts it takes a third of the time
    widen(std::integral_constant<int64_t, 3>(), std::integral_constant<int64_t, 4>());
  else
    widen(c, channels);
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
      : view_{with_channels(shape, channels), source.x, source.may_merge && merges_kernel_row(shape, channels)} {
    if (source.x && !view_.merged && channels == shape.c) return;
    memory_ = context.empty({shape.n * shape.h * view_.width * channels}, dtype_of<T>());
    T* const copy = memory_.data<T>();
    view_.x = copy;
    const int64_t left = view_.merged ? shape.pad_left : 0, right = view_.merged ? shape.pad_right : 0;
    parallel_ranges(
        shape.n * shape.h,
        [&](int64_t begin, int64_t end) {
          for (int64_t row = begin; row < end; ++row) {
            T* const to = std::fill_n(copy + row * view_.width * channels, left * channels, source.padding);
            write_pixels(row, to);
            std::fill_n(to + shape.w * channels, right * channels, source.padding);
          }
        },
        view_.width * channels);
  }

  const Im2colView<T>& view() const { return view_; }

 private:
  static ConvShape with_channels(ConvShape o, int64_t channels) {
    o.c = channels;
    return o;
  }
  static bool merges_kernel_row(const ConvShape& o, int64_t channels) {
    return channels < kMinRun && o.s > 1 && o.dilation_w == 1;
  }

  Im2colView<T> view_;
  Tensor memory_;
};

}  // namespace dtrain::cpu
