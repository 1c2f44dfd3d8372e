#include "dtrain/ops/roi_samples.h"

#include <algorithm>

#include "dtrain/core/dispatch.h"
#include "libdtrain/cpu/threads/work_stealing.h"
#include "libdtrain/ops/box_checks.h"
#include "libdtrain/ops/box_math.h"
#include "libdtrain/ops/roi_samples_kernels.h"

namespace dtrain {

void gather_samples(Context& context, const Tensor& boxes, const Tensor& matched, const Tensor& truth,
                    const Tensor& truth_classes, const BoxCoder& coder, const RoiSamples& samples) {
  require_rank("gather_samples: matched [n, t]", matched, 2, DType::i32);
  require_rank("gather_samples: truth_classes [n, g]", truth_classes, 2, DType::i32);
  require_rank("gather_samples: rois [n * s, 4]", samples.rois, 2, DType::f32);
  const int64_t n = matched.dim(0), g = truth_classes.dim(1), rows = samples.rois.dim(0);
  require_tensor("gather_samples: boxes", boxes, {n, matched.dim(1), 4}, DType::f32);
  require_tensor("gather_samples: truth", truth, {n, g, 4}, DType::f32);
  require_tensor("gather_samples: truth_classes", truth_classes, {n, g}, DType::i32);
  DT_CHECK(n > 0 && rows % n == 0, "gather_samples: ", rows, " rows for ", n, " images");
  require_tensor("gather_samples: rois", samples.rois, {rows, 4}, DType::f32);
  require_tensor("gather_samples: images", samples.images, {rows}, DType::i32);
  require_tensor("gather_samples: classes", samples.classes, {rows}, DType::i32);
  require_tensor("gather_samples: truth of samples", samples.truth, {rows}, DType::i32);
  require_tensor("gather_samples: deltas", samples.deltas, {rows, 4}, DType::f32);
  require_tensor("gather_samples: totals", samples.totals, {2}, DType::f32);
  DT_DISPATCH(context, gather_samples)(boxes, matched, truth, truth_classes, coder, samples);
}

namespace cpu {
namespace {

// Arguments of a call.
struct Gathering {
  const Tensor &boxes, &matched, &truth, &truth_classes;
  const BoxCoder& coder;
  const RoiSamples& samples;
  const int64_t t = matched.dim(1), g = truth.dim(1), s = samples.rois.dim(0) / matched.dim(0);

  void write(int64_t image, int64_t row, const Box& box, int32_t match) const {
    const bool positive = match >= 0;
    BoxDeltas deltas{};
    if (positive) deltas = encode_box(coder, box_at(truth.data<float>() + 4 * (image * g + match)), box);
    float *const roi = samples.rois.data<float>() + 4 * row, *const delta = samples.deltas.data<float>() + 4 * row;
    roi[0] = box.x1, roi[1] = box.y1, roi[2] = box.x2, roi[3] = box.y2;
    delta[0] = deltas.x, delta[1] = deltas.y, delta[2] = deltas.w, delta[3] = deltas.h;
    samples.images.data<int32_t>()[row] = static_cast<int32_t>(image);
    samples.classes.data<int32_t>()[row] = positive ? truth_classes.data<int32_t>()[image * g + match] : 0;
    samples.truth.data<int32_t>()[row] = positive ? match : -1;
  }

  // Writes boxes of `image` whose entry is_chosen() from `row` on; returns the next row.
  template <class Chosen>
  int64_t gather(int64_t image, int64_t row, Chosen&& is_chosen) const {
    const int32_t* const match = matched.data<int32_t>() + image * t;
    const float* const box = boxes.data<float>() + 4 * image * t;
    for (int64_t i = 0; i < t && row < (image + 1) * s; ++i)
      if (is_chosen(match[i])) write(image, row++, box_at(box + 4 * i), match[i]);
    return row;
  }
};

void pad(const RoiSamples& samples, int64_t begin, int64_t end) {
  std::fill(samples.rois.data<float>() + 4 * begin, samples.rois.data<float>() + 4 * end, 0.0f);
  std::fill(samples.deltas.data<float>() + 4 * begin, samples.deltas.data<float>() + 4 * end, 0.0f);
  for (const Tensor& column : {samples.images, samples.classes, samples.truth})
    std::fill(column.data<int32_t>() + begin, column.data<int32_t>() + end, -1);
}

}  // namespace

void gather_samples(Context&, const Tensor& boxes, const Tensor& matched, const Tensor& truth,
                    const Tensor& truth_classes, const BoxCoder& coder, const RoiSamples& samples) {
  const Gathering gathering{boxes, matched, truth, truth_classes, coder, samples};
  const auto g = static_cast<int32_t>(gathering.g);
  parallel_ranges(
      matched.dim(0),
      [&](int64_t begin, int64_t end) {
        for (int64_t image = begin; image < end; ++image) {
          int64_t row = gathering.gather(image, image * gathering.s, [=](int32_t m) { return m >= 0 && m < g; });
          row = gathering.gather(image, row, [](int32_t m) { return m == kBackground; });
          pad(samples, row, (image + 1) * gathering.s);
        }
      },
      2 * gathering.t + 32 * gathering.s);
  const auto images = samples.images.span<int32_t>(), truths = samples.truth.span<int32_t>();
  const auto there = [](int32_t i) { return i >= 0; };
  float* const totals = samples.totals.data<float>();
  totals[0] = static_cast<float>(std::count_if(images.begin(), images.end(), there));
  totals[1] = static_cast<float>(std::count_if(truths.begin(), truths.end(), there));
}

}  // namespace cpu
}  // namespace dtrain
