// Reference results in double precision that are matrix products, by Eigen: linear layers, convolutions as im2col and
// GEMM, transposed convolutions as GEMM and col2im.
#pragma once

#include <Eigen/Core>
#include <algorithm>

#include "dtrain/ops/conv2d.h"
#include "dtrain/testing/array.h"

namespace dtrain {

using RowMajorMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using MatrixView = Eigen::Map<RowMajorMatrix, 0, Eigen::OuterStride<>>;
using ConstMatrixView = Eigen::Map<const RowMajorMatrix, 0, Eigen::OuterStride<>>;

// An array as a matrix whose rows are its last dimension.
inline ConstMatrixView as_rows(const Array& a) {
  const int64_t columns = a.dim(a.shape.rank() - 1);
  return {a.values.data(), a.count() / columns, columns, Eigen::OuterStride<>(columns)};
}
inline MatrixView as_rows(Array& a) {
  const int64_t columns = a.dim(a.shape.rank() - 1);
  return {a.values.data(), a.count() / columns, columns, Eigen::OuterStride<>(columns)};
}

inline void add_bias(Array& y, const Array* bias) {
  if (bias) as_rows(y).rowwise() += Eigen::Map<const Eigen::RowVectorXd>(bias->values.data(), bias->count());
}

// x [n, in], w [out, in], bias null or [out] -> [n, out]
inline Array linear_reference(const Array& x, const Array& w, const Array* bias = nullptr) {
  Array y({x.dim(0), w.dim(0)});
  as_rows(y).noalias() = as_rows(x) * as_rows(w).transpose();
  add_bias(y, bias);
  return y;
}

// Calls visit(row, tap, pixel) for the pixels of an image [height, width] under the windows of a convolution: `row` of
// its p * q windows, `tap` of a window's r * s. Windows over padding have no pixels there.
template <class Visit>
void for_each_window_pixel(int64_t height, int64_t width, int64_t p, int64_t q, int64_t r, int64_t s,
                           const Conv2dOptions& o, Visit visit) {
  for (int64_t row = 0; row < p * q; ++row)
    for (int64_t tap = 0; tap < r * s; ++tap) {
      const int64_t y = row / q * o.stride.h + tap / s * o.dilation.h - o.padding.top;
      const int64_t x = row % q * o.stride.w + tap % s * o.dilation.w - o.padding.left;
      if (y >= 0 && y < height && x >= 0 && x < width) visit(row, tap, y * width + x);
    }
}

// x [n, h, w, c], w [k, r, s, c / groups], bias null or [k] -> [n, p, q, k]: for each image and group, im2col and GEMM.
inline Array conv2d_reference(const Array& x, const Array& w, const Array* bias, const Conv2dOptions& o) {
  Array y(conv2d_shape(x.shape, w.shape, o));
  const int64_t pixels = x.dim(1) * x.dim(2), windows = y.dim(1) * y.dim(2);
  const int64_t channels = w.dim(3), filters = w.dim(0) / o.groups, taps = w.dim(1) * w.dim(2);
  MatrixView results = as_rows(y);
  const Eigen::Map<const RowMajorMatrix> weights(w.values.data(), w.dim(0), taps * channels);
  RowMajorMatrix columns(windows, taps * channels);
  for (int64_t n = 0; n < x.dim(0); ++n)
    for (int64_t group = 0; group < o.groups; ++group) {
      columns.setZero();
      const auto copy = [&](int64_t row, int64_t tap, int64_t pixel) {
        const double* from = x.values.data() + (n * pixels + pixel) * x.dim(3) + group * channels;
        std::copy_n(from, channels, columns.data() + (row * taps + tap) * channels);
      };
      for_each_window_pixel(x.dim(1), x.dim(2), y.dim(1), y.dim(2), w.dim(1), w.dim(2), o, copy);
      results.block(n * windows, group * filters, windows, filters).noalias() =
          columns * weights.middleRows(group * filters, filters).transpose();
    }
  add_bias(y, bias);
  return y;
}

// x [n, p, q, k], w [k, r, s, c], bias null or [c] -> [n, h, w, c]: for each image, GEMM and col2im.
inline Array conv_transpose2d_reference(const Array& x, const Array& w, const Array* bias, const Conv2dOptions& o) {
  const Padding& pad = o.padding;
  Array y({x.dim(0), (x.dim(1) - 1) * o.stride.h - pad.top - pad.bottom + w.dim(1),
           (x.dim(2) - 1) * o.stride.w - pad.left - pad.right + w.dim(2), w.dim(3)});
  const int64_t pixels = y.dim(1) * y.dim(2), windows = x.dim(1) * x.dim(2), channels = w.dim(3);
  const Eigen::Map<const RowMajorMatrix> weights(w.values.data(), w.dim(0), w.count() / w.dim(0));
  MatrixView images = as_rows(y);
  for (int64_t n = 0; n < x.dim(0); ++n) {
    const RowMajorMatrix columns = as_rows(x).middleRows(n * windows, windows) * weights;
    const auto add = [&](int64_t row, int64_t tap, int64_t pixel) {
      images.row(n * pixels + pixel) += columns.block(row, tap * channels, 1, channels);
    };
    for_each_window_pixel(y.dim(1), y.dim(2), x.dim(1), x.dim(2), w.dim(1), w.dim(2), o, add);
  }
  add_bias(y, bias);
  return y;
}

}  // namespace dtrain
