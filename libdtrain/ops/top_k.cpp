#include "dtrain/ops/top_k.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "dtrain/core/dispatch.h"
#include "libdtrain/cpu/threads/scratch.h"
#include "libdtrain/cpu/threads/work_stealing.h"
#include "libdtrain/ops/box_checks.h"
#include "libdtrain/ops/box_math.h"
#include "libdtrain/ops/match_math.h"
#include "libdtrain/ops/top_k_kernels.h"
#include "libdtrain/ops/top_k_math.h"

namespace dtrain {

void top_k(Context& context, const Tensor& scores, const Tensor& counts, const Tensor& values, const Tensor& indices) {
  DT_CHECK(scores && scores.shape().rank() == 2, "top_k: expected scores [rows, n], found ", scores.shape());
  require_optional("top_k: counts", counts, {scores.dim(0)}, DType::i32);
  require_rank("top_k: values [rows, k]", values, 2, DType::f32);
  require_tensor("top_k: values", values, {scores.dim(0), values.dim(1)}, DType::f32);
  require_tensor("top_k: indices", indices, values.shape(), DType::i32);
  if (values.count() > 0) DT_DISPATCH(context, top_k)(scores, counts, values, indices);
}

void nms(Context& context, const Tensor& boxes, const Tensor& scores, const Tensor& groups, const NmsOptions& options,
         const Tensor& kept, const Tensor& counts) {
  require_rank("nms: scores [rows, k]", scores, 2, DType::f32);
  const Shape shape = scores.shape();
  require_tensor("nms: boxes", boxes, {shape[0], shape[1], 4}, DType::f32);
  require_optional("nms: groups", groups, shape, DType::i32);
  require_rank("nms: kept [rows, m]", kept, 2, DType::i32);
  require_tensor("nms: kept", kept, {shape[0], kept.dim(1)}, DType::i32);
  require_tensor("nms: counts", counts, {shape[0]}, DType::i32);
  if (shape[0] > 0) DT_DISPATCH(context, nms)(boxes, scores, groups, options, kept, counts);
}

namespace cpu {
namespace {

void top_of_row(const float* scores, int64_t count, int64_t k, uint64_t* keys, float* values, int32_t* indices) {
  const int64_t chosen = std::min(count, k);
  for (int64_t i = 0; i < count; ++i) keys[i] = ScoreKey::of(scores[i], i);
  if (chosen < count) std::nth_element(keys, keys + chosen, keys + count, std::greater<>());
  std::sort(keys, keys + chosen, std::greater<>());
  for (int64_t i = 0; i < chosen; ++i) values[i] = ScoreKey::score(keys[i]), indices[i] = ScoreKey::index(keys[i]);
  std::fill(values + chosen, values + k, -INFINITY);
  std::fill(indices + chosen, indices + k, -1);
}

// Boxes of a row in structure-of-arrays layout for vectorisation.
struct Candidates {
  float *x1, *y1, *x2, *y2, *area;
  int32_t *group, *alive;
  int64_t count;

  // Floats of `memory` per box.
  static constexpr int64_t kColumns = 7;
  Candidates(float* memory, int64_t k, const float* boxes, const float* scores, const int32_t* groups, float margin)
      : x1(memory), y1(x1 + k), x2(y1 + k), y2(x2 + k), area(y2 + k), count(k) {
    group = reinterpret_cast<int32_t*>(area + k);
    alive = group + k;
    for (int64_t i = 0; i < k; ++i) {
      const Box box = box_at(boxes + 4 * i);
      x1[i] = box.x1, y1[i] = box.y1, x2[i] = box.x2, y2[i] = box.y2;
      area[i] = box_area(box, margin);
      group[i] = groups ? groups[i] : 0;
      alive[i] = scores[i] > -INFINITY ? 1 : 0;
    }
  }
  // Keeps box i and suppresses boxes that overlap it.
  void suppress(int64_t i, float threshold, float margin) const {
    const Box box{x1[i], y1[i], x2[i], y2[i]};
    const float size = area[i];
    const int32_t own = group[i];
    for (int64_t j = i + 1; j < count; ++j) {
      const float iou = box_overlap(box, size, {x1[j], y1[j], x2[j], y2[j]}, area[j], margin);
      alive[j] = ((iou > threshold) & (group[j] == own)) ? 0 : alive[j];
    }
  }
};

}  // namespace

void top_k(Context& context, const Tensor& scores, const Tensor& counts, const Tensor& values, const Tensor& indices) {
  const int64_t rows = scores.dim(0), n = scores.dim(1), k = values.dim(1);
  const Scratch<uint64_t> keys(context, rows * n);
  const float* const from = scores.data<float>();
  const int32_t* const count = counts ? counts.data<int32_t>() : nullptr;
  parallel_ranges(
      rows,
      [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row)
          top_of_row(from + row * n, count ? within(count[row], n) : n, k, keys.data() + row * n,
                     values.data<float>() + row * k, indices.data<int32_t>() + row * k);
      },
      16 * n);
}

void nms(Context& context, const Tensor& boxes, const Tensor& scores, const Tensor& groups, const NmsOptions& options,
         const Tensor& kept, const Tensor& counts) {
  const int64_t rows = scores.dim(0), k = scores.dim(1), m = kept.dim(1);
  const float margin = size_margin(options.plus_one);
  const Scratch<float> memory(context, rows * k * Candidates::kColumns);
  parallel_ranges(
      rows,
      [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const Candidates candidates(memory.data() + row * k * Candidates::kColumns, k,
                                      boxes.data<float>() + 4 * row * k, scores.data<float>() + row * k,
                                      groups ? groups.data<int32_t>() + row * k : nullptr, margin);
          int32_t* const to = kept.data<int32_t>() + row * m;
          int64_t count = 0;
          for (int64_t i = 0; i < k && count < m; ++i) {
            if (candidates.alive[i] == 0) continue;
            to[count++] = static_cast<int32_t>(i);
            candidates.suppress(i, options.threshold, margin);
          }
          std::fill(to + count, to + m, -1);
          counts.data<int32_t>()[row] = static_cast<int32_t>(count);
        }
      },
      k * std::min(k, m));
}

}  // namespace cpu
}  // namespace dtrain
