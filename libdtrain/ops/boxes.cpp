#include "dtrain/ops/boxes.h"

#include "dtrain/core/dispatch.h"
#include "libdtrain/cpu/threads/work_stealing.h"
#include "libdtrain/ops/box_checks.h"
#include "libdtrain/ops/box_math.h"
#include "libdtrain/ops/boxes_kernels.h"

namespace dtrain {
namespace {

void require_weights(const char* op, const BoxCoder& coder) {
  DT_CHECK(coder.wx > 0 && coder.wy > 0 && coder.ww > 0 && coder.wh > 0, op, ": weights ", coder.wx, ", ", coder.wy,
           ", ", coder.ww, ", ", coder.wh, " must be positive");
}

}  // namespace

void encode_boxes(Context& context, const Tensor& boxes, const Tensor& anchors, const BoxCoder& coder,
                  const Tensor& deltas) {
  require_weights("encode_boxes", coder);
  require_rank("encode_boxes: boxes [n, 4]", boxes, 2, DType::f32);
  const Shape shape{boxes.dim(0), 4};
  require_tensor("encode_boxes: boxes", boxes, shape, DType::f32);
  require_tensor("encode_boxes: anchors", anchors, shape, DType::f32);
  require_tensor("encode_boxes: deltas", deltas, shape, DType::f32);
  DT_DISPATCH(context, encode_boxes)(boxes, anchors, coder, deltas);
}

void decode_boxes(Context& context, const Tensor& deltas, const Tensor& anchors, const Tensor& limits,
                  const BoxCoder& coder, const Tensor& boxes) {
  require_weights("decode_boxes", coder);
  DT_CHECK(deltas && deltas.shape().rank() == 3 && deltas.dim(2) == 4,
           "decode_boxes: expected deltas [n, k, 4], found ", deltas.shape());
  require_tensor("decode_boxes: anchors", anchors, {deltas.dim(0), 4}, DType::f32);
  if (limits) {
    require_rank("decode_boxes: limits [images, 2]", limits, 2, DType::f32);
    require_tensor("decode_boxes: limits", limits, {limits.dim(0), 2}, DType::f32);
    DT_CHECK(limits.dim(0) > 0 && deltas.dim(0) % limits.dim(0) == 0, "decode_boxes: ", deltas.dim(0), " rows of ",
             limits.dim(0), " images; expected equally many of each");
  }
  require_tensor("decode_boxes: boxes", boxes, deltas.shape(), DType::f32);
  DT_DISPATCH(context, decode_boxes)(deltas, anchors, limits, coder, boxes);
}

void box_iou(Context& context, const Tensor& boxes, const Tensor& others, bool plus_one, const Tensor& iou) {
  require_rank("box_iou: boxes [m, 4]", boxes, 2, DType::f32);
  require_rank("box_iou: others [n, 4]", others, 2, DType::f32);
  require_tensor("box_iou: boxes", boxes, {boxes.dim(0), 4}, DType::f32);
  require_tensor("box_iou: others", others, {others.dim(0), 4}, DType::f32);
  require_tensor("box_iou: iou", iou, {boxes.dim(0), others.dim(0)}, DType::f32);
  DT_DISPATCH(context, box_iou)(boxes, others, plus_one, iou);
}

namespace cpu {
namespace {

// Cost of a box with two logarithms or exponentials, in loads, adds and stores.
constexpr int64_t kBoxWeight = 32;

}  // namespace

void encode_boxes(Context&, const Tensor& boxes, const Tensor& anchors, const BoxCoder& coder, const Tensor& deltas) {
  const float *const box = boxes.data<float>(), *const anchor = anchors.data<float>();
  float* const to = deltas.data<float>();
  parallel_ranges(
      boxes.dim(0),
      [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const BoxDeltas d = encode_box(coder, box_at(box + 4 * i), box_at(anchor + 4 * i));
          to[4 * i] = d.x, to[4 * i + 1] = d.y, to[4 * i + 2] = d.w, to[4 * i + 3] = d.h;
        }
      },
      kBoxWeight);
}

void decode_boxes(Context&, const Tensor& deltas, const Tensor& anchors, const Tensor& limits, const BoxCoder& coder,
                  const Tensor& boxes) {
  const float *const from = deltas.data<float>(), *const anchor = anchors.data<float>();
  const float* const limit = limits ? limits.data<float>() : nullptr;
  const float margin = size_margin(coder.plus_one);
  const int64_t k = deltas.dim(1), rows_per_image = limit ? deltas.dim(0) / limits.dim(0) : 1;
  float* const to = boxes.data<float>();
  parallel_ranges(
      deltas.dim(0) * k,
      [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const float* const d = from + 4 * i;
          const int64_t row = i / k;
          Box box = decode_box(coder, {d[0], d[1], d[2], d[3]}, box_at(anchor + 4 * row));
          const float* const size = limit ? limit + 2 * (row / rows_per_image) : nullptr;
          if (size) box = clip_box(box, size[0], size[1], margin);
          to[4 * i] = box.x1, to[4 * i + 1] = box.y1, to[4 * i + 2] = box.x2, to[4 * i + 3] = box.y2;
        }
      },
      kBoxWeight);
}

void box_iou(Context&, const Tensor& boxes, const Tensor& others, bool plus_one, const Tensor& iou) {
  const float *const a = boxes.data<float>(), *const b = others.data<float>();
  const float margin = size_margin(plus_one);
  const int64_t n = others.dim(0);
  float* const to = iou.data<float>();
  parallel_ranges(
      boxes.dim(0),
      [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const Box box = box_at(a + 4 * i);
          const float area = box_area(box, margin);
          for (int64_t j = 0; j < n; ++j) {
            const Box other = box_at(b + 4 * j);
            to[i * n + j] = box_overlap(box, area, other, box_area(other, margin), margin);
          }
        }
      },
      4 * n);
}

}  // namespace cpu
}  // namespace dtrain
