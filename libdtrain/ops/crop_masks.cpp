#include "dtrain/ops/crop_masks.h"

#include <algorithm>

#include "dtrain/core/dispatch.h"
#include "libdtrain/cpu/threads/work_stealing.h"
#include "libdtrain/ops/crop_masks_kernels.h"
#include "libdtrain/ops/crop_masks_math.h"

namespace dtrain {
namespace {

bool is(const Tensor& x, const Shape& shape, DType dtype) { return x && x.shape() == shape && x.dtype() == dtype; }

void require_runs(const RleMasks& runs) {
  const auto& [ends, begins, sizes] = runs;
  const bool tables = ends && ends.shape().rank() == 2 && ends.dtype() == DType::i32 && begins &&
                      begins.shape().rank() == 2 && begins.dtype() == DType::i32 && begins.dim(0) == ends.dim(0) &&
                      begins.dim(1) >= 1;
  DT_CHECK(tables && is(sizes, {ends.dim(0), 2}, DType::f32), "crop_masks: ends ", ends.shape(), " of ", ends.dtype(),
           ", begins ", begins.shape(), " of ", begins.dtype(), ", sizes ", sizes.shape(), " of ", sizes.dtype(),
           "; expected [n, capacity] and [n, g + 1] of i32, and [n, 2] of f32");
}

}  // namespace

void crop_masks(Context& context, const RleMasks& runs, const Tensor& rois, const Tensor& images, const Tensor& which,
                const CropOptions& options, const Tensor& y) {
  require_runs(runs);
  DT_CHECK(rois.shape().rank() == 2 && is(rois, {rois.dim(0), 4}, DType::f32), "crop_masks: regions ", rois.shape(),
           " of ", rois.dtype(), ", expected [r, 4] of f32");
  const int64_t r = rois.dim(0);
  DT_CHECK(is(images, {r}, DType::i32) && is(which, {r}, DType::i32), "crop_masks: images ", images.shape(), " of ",
           images.dtype(), " and which ", which.shape(), " of ", which.dtype(), ", expected [", r, "] of i32");
  DT_CHECK(options.height >= 1 && options.width >= 1 && options.sampling_ratio >= 0, "crop_masks: ", options.height,
           " x ", options.width, " cells and sampling ratio ", options.sampling_ratio,
           "; expected at least one cell, and no negative ratio");
  const Shape shape{r, options.height, options.width};
  DT_CHECK(is(y, shape, DType::f32), "crop_masks: a result ", y.shape(), " of ", y.dtype(), ", expected ", shape,
           " of f32");
  DT_DISPATCH(context, crop_masks)(runs, rois, images, which, options, y);
}

void ignore_unknown_masks(Context& context, const RleMasks& runs, const Tensor& images, const Tensor& which,
                          const Tensor& weights) {
  require_runs(runs);
  const int64_t r = images.count();
  DT_CHECK(is(images, {r}, DType::i32) && is(which, {r}, DType::i32) && is(weights, {r}, DType::f32),
           "ignore_unknown_masks: images ", images.shape(), " of ", images.dtype(), ", which ", which.shape(), " of ",
           which.dtype(), ", weights ", weights.shape(), " of ", weights.dtype(), "; expected [r] of i32, i32 and f32");
  DT_DISPATCH(context, ignore_unknown_masks)(runs, images, which, weights);
}

void cpu::ignore_unknown_masks(Context&, const RleMasks& runs, const Tensor& images, const Tensor& which,
                               const Tensor& weights) {
  const RleTable table(runs);
  for (int64_t r = 0; r < images.count(); ++r)
    if (table.is_unknown(images.data<int32_t>()[r], which.data<int32_t>()[r])) weights.data<float>()[r] = 0;
}

void cpu::crop_masks(Context&, const RleMasks& runs, const Tensor& rois, const Tensor& images, const Tensor& which,
                     const CropOptions& o, const Tensor& y) {
  const RleTable table(runs);
  for (int64_t r = 0; r < rois.dim(0); ++r)
    DT_CHECK(table.has(images.data<int32_t>()[r], which.data<int32_t>()[r]), "crop_masks: region ", r, " is of image ",
             which.data<int32_t>()[r], " of ", table.per_row, ", row ", images.data<int32_t>()[r], " of ", table.rows);
  const int64_t cells = o.height * o.width;
  const auto crop = [&](int64_t r) {
    float* const to = y.data<float>() + r * cells;
    const int64_t row = images.data<int32_t>()[r], number = which.data<int32_t>()[r];
    if (row < 0 || number < 0) {
      std::fill_n(to, cells, 0.0f);
      return;
    }
    const RleMask image = table.of(row, number);
    const float* const roi = rois.data<float>() + 4 * r;
    const RoiAxis rows = image.rows(roi, o), columns = image.columns(roi, o);
    for (int i = 0; i < o.height; ++i)
      for (int j = 0; j < o.width; ++j) to[i * o.width + j] = crop_cell(image, rows, columns, i, j);
  };
  parallel_ranges(
      rois.dim(0),
      [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) crop(r);
      },
      cells * 64);
}

}  // namespace dtrain
