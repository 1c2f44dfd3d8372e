// Reference results of a convolution in double precision, by Eigen.
#pragma once

#include <Eigen/Core>
#include <vector>

#include "libdtrain/ops/conv2d_kernels.h"
#include "tests/cpu/for_each_tap.h"

namespace dtrain {

// Results of all passes: y [n, p, q, k], dx [n, h, w, c], dw [k, r, s, c / groups].
struct ConvReference {
  std::vector<double> y, dx, dw;

  // Per pixel, filter tap and group one matrix-vector product for y and dx, and one outer product for dw.
  template <class T>
  ConvReference(const cpu::ConvShape& o, const std::vector<T>& x, const std::vector<T>& w, const std::vector<T>& dy)
      : y(dy.size()), dx(x.size()), dw(w.size()) {
    using Rows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    using Vector = Eigen::Map<Eigen::VectorXd>;
    const std::vector<double> images(x.begin(), x.end()), weights(w.begin(), w.end()), gradients(dy.begin(), dy.end());
    const int64_t channels = o.c / o.groups, filters = o.k / o.groups;
    const Eigen::OuterStride<> filter_step(o.r * o.s * channels);
    for_each_tap(o, [&](int64_t out, int64_t in, int64_t tap) {
      for (int64_t group = 0; group < o.groups; ++group) {
        const int64_t result = out * o.k + group * filters, pixel = in * o.c + group * channels;
        const int64_t weight = (group * filters * o.r * o.s + tap) * channels;
        const Eigen::Map<const Eigen::VectorXd> own_x(images.data() + pixel, channels);
        const Eigen::Map<const Eigen::VectorXd> own_dy(gradients.data() + result, filters);
        const Eigen::Map<const Rows, 0, Eigen::OuterStride<>> own_w(weights.data() + weight, filters, channels,
                                                                    filter_step);
        Vector(y.data() + result, filters).noalias() += own_w * own_x;
        Vector(dx.data() + pixel, channels).noalias() += own_w.transpose() * own_dy;
        Eigen::Map<Rows, 0, Eigen::OuterStride<>>(dw.data() + weight, filters, channels, filter_step).noalias() +=
            own_dy * own_x.transpose();
      }
    });
  }
};

}  // namespace dtrain
