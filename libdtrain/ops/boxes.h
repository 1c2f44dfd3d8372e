// Boxes: corners x1, y1, x2, y2 in pixels, f32. What a network says of them are deltas from reference boxes.
#pragma once

#include "libdtrain/core/context.h"

namespace dtrain {

// Deltas of a box with centre (cx, cy) and size (w, h) from an anchor (ax, ay), (aw, ah):
//   wx * (cx - ax) / aw,  wy * (cy - ay) / ah,  ww * log(w / aw),  wh * log(h / ah)
// (Girshick et al. 2014). Decoding divides by the weights and limits the last two to `clip` before it takes the
// exponential.
struct BoxCoder {
  float wx = 1, wy = 1, ww = 1, wh = 1;
  float clip = 4.135166556742356f;  // log(1000 / 16)
  // Sizes are x2 - x1 + 1, as Detectron's first version and early TensorPack had it; centres and corners accordingly.
  bool plus_one = false;
};

// All throw Error where shapes or types do not fit, or a weight is not positive.
//
// boxes [n, 4], anchors [n, 4] -> deltas [n, 4], f32. An anchor without area gives no finite number.
void encode_boxes(Context& context, const Tensor& boxes, const Tensor& anchors, const BoxCoder& coder,
                  const Tensor& deltas);
// deltas [n, k, 4] of any floating-point type, anchors [n, 4] f32 -> boxes [n, k, 4] f32. `limits` is undefined or
// [images, 2] f32, the height and width of each image, to which boxes are clipped; n / images rows after one another
// are of one image.
void decode_boxes(Context& context, const Tensor& deltas, const Tensor& anchors, const Tensor& limits,
                  const BoxCoder& coder, const Tensor& boxes);
// boxes [m, 4], others [n, 4] -> intersection over union [m, n], f32; 0 where both have no area.
void box_iou(Context& context, const Tensor& boxes, const Tensor& others, bool plus_one, const Tensor& iou);

namespace cpu {
void encode_boxes(Context&, const Tensor& boxes, const Tensor& anchors, const BoxCoder&, const Tensor& deltas);
void decode_boxes(Context&, const Tensor& deltas, const Tensor& anchors, const Tensor& limits, const BoxCoder&,
                  const Tensor& boxes);
void box_iou(Context&, const Tensor& boxes, const Tensor& others, bool plus_one, const Tensor& iou);
}  // namespace cpu

namespace cuda {
decltype(cpu::encode_boxes) encode_boxes;
decltype(cpu::decode_boxes) decode_boxes;
decltype(cpu::box_iou) box_iou;
}  // namespace cuda

}  // namespace dtrain
