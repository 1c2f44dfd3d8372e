#include "libdtrain/ops/candidates.h"

#include <algorithm>
#include <limits>

#include "dtrain/core/dispatch.h"
#include "libdtrain/cpu/threads/work_stealing.h"
#include "libdtrain/ops/candidates_math.h"

namespace dtrain {
namespace {

void require_type(const Tensor& x, DType dtype, const char* what) {
  DT_CHECK(x.dtype() == dtype, what, " of type ", x.dtype(), "; expected ", dtype);
}

}  // namespace

void drop_small_boxes(Context& context, const Tensor& boxes, float min_side, const Tensor& scores) {
  DT_CHECK(boxes.shape().rank() == 2 && boxes.dim(1) == 4 && scores.shape() == Shape{boxes.dim(0)},
           "drop_small_boxes: boxes ", boxes.shape(), " and scores ", scores.shape(), "; expected [n, 4] and [n]");
  require_type(boxes, DType::f32, "drop_small_boxes: boxes");
  require_type(scores, DType::f32, "drop_small_boxes: scores");
  DT_DISPATCH(context, drop_small_boxes)(boxes, min_side, scores);
}

void class_candidates(Context& context, const Tensor& probabilities, const Tensor& counts, float threshold,
                      const Tensor& scores, const Tensor& passed) {
  DT_CHECK(scores.shape().rank() == 2 && probabilities.shape().rank() == 2 && counts.shape() == Shape{scores.dim(0)} &&
               passed.shape() == counts.shape() && probabilities.count() == scores.count() &&
               probabilities.dim(1) > 0 && scores.dim(1) % probabilities.dim(1) == 0,
           "class_candidates: probabilities ", probabilities.shape(), ", counts ", counts.shape(), ", scores ",
           scores.shape(), " and passed ", passed.shape(), "; expected [n * p, c], [n], [n, p * c] and [n]");
  for (const Tensor* x : {&probabilities, &scores}) require_type(*x, DType::f32, "class_candidates: probabilities");
  for (const Tensor* x : {&counts, &passed}) require_type(*x, DType::i32, "class_candidates: counts");
  DT_DISPATCH(context, class_candidates)(probabilities, counts, threshold, scores, passed);
}

void scores_by_class(Context& context, const Tensor& probabilities, float threshold, const Tensor& scores) {
  DT_CHECK(probabilities.shape().rank() == 2 && scores.shape().rank() == 3 && probabilities.dim(1) == scores.dim(1) &&
               probabilities.dim(0) == scores.dim(0) * scores.dim(2),
           "scores_by_class: probabilities ", probabilities.shape(), " and scores ", scores.shape(),
           "; expected [n * p, c] and [n, c, p]");
  for (const Tensor* x : {&probabilities, &scores}) require_type(*x, DType::f32, "scores_by_class: probabilities");
  DT_DISPATCH(context, scores_by_class)(probabilities, threshold, scores);
}

void candidate_classes(Context& context, const Tensor& indices, int64_t c, const Tensor& classes) {
  DT_CHECK(c > 0 && c <= INT32_MAX && indices.shape() == classes.shape(), "candidate_classes: indices ",
           indices.shape(), " of ", c, " classes, for classes ", classes.shape());
  for (const Tensor* x : {&indices, &classes}) require_type(*x, DType::i32, "candidate_classes: indices");
  DT_DISPATCH(context, candidate_classes)(indices, c, classes);
}

namespace cpu {

void drop_small_boxes(Context&, const Tensor& boxes, float min_side, const Tensor& scores) {
  const float* const box = boxes.data<float>();
  float* const score = scores.data<float>();
  for (int64_t i = 0; i < scores.count(); ++i)
    if (is_small(box + 4 * i, min_side)) score[i] = kNoScore;
}

void class_candidates(Context&, const Tensor& probabilities, const Tensor& counts, float threshold,
                      const Tensor& scores, const Tensor& passed) {
  const int64_t n = scores.dim(0), width = scores.dim(1), c = probabilities.dim(1);
  const float* const from = probabilities.data<float>();
  const int32_t* const count = counts.data<int32_t>();
  float* const to = scores.data<float>();
  int32_t* const above = passed.data<int32_t>();
  parallel_ranges(
      n,
      [=](int64_t begin, int64_t end) {
        for (int64_t image = begin; image < end; ++image) {
          above[image] = 0;
          for (int64_t i = 0; i < width; ++i) {
            const float score = candidate_score(from[image * width + i], i, c, count[image], threshold);
            to[image * width + i] = score;
            above[image] += score > kNoScore;
          }
        }
      },
      width);
}

void scores_by_class(Context&, const Tensor& probabilities, float threshold, const Tensor& scores) {
  const int64_t c = scores.dim(1), p = scores.dim(2);
  const float* const from = probabilities.data<float>();
  float* const to = scores.data<float>();
  parallel_ranges(
      scores.dim(0) * c,
      [=](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row)
          for (int64_t i = 0; i < p; ++i)
            to[row * p + i] = class_score(from[(row / c * p + i) * c + row % c], row % c, threshold);
      },
      p);
}

void candidate_classes(Context&, const Tensor& indices, int64_t c, const Tensor& classes) {
  const auto from = indices.span<int32_t>();
  const auto to = classes.span<int32_t>();
  std::ranges::transform(from, to.begin(), [c](int32_t index) { return class_of(index, static_cast<int32_t>(c)); });
}

}  // namespace cpu
}  // namespace dtrain
