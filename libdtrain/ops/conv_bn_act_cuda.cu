// The choice between a convolution that makes the sums of its output as it is written and one that does not.
#include "libdtrain/ops/conv2d.h"

namespace dtrain::cuda {

void conv2d_with_sums(Context& context, const Tensor& x, const Tensor& w, const Conv2dOptions& options, const Tensor& y,
                      float worth, ChannelSums& sums) {
  if (worth > 0) {
    const ChannelSums made{context.empty({y.dim(3)}), context.empty({y.dim(3)})};
    if (statistics_cost(context, x, w, options, y, made.sum, made.square) < worth &&
        conv2d_with_statistics(context, x, w, options, y, made.sum, made.square)) {
      sums = made;
      return;
    }
  }
  conv2d(context, x, w, {}, options, y);
}

}  // namespace dtrain::cuda
