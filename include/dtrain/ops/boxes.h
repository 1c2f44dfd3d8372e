// Bounding boxes: corners x1, y1, x2, y2 in pixels, f32, and their encoding as deltas from anchors.
#pragma once

#include "dtrain/core/context.h"

namespace dtrain {

// Deltas of a box with centre (cx, cy) and size (w, h) from an anchor (ax, ay), (aw, ah):
//   wx * (cx - ax) / aw,  wy * (cy - ay) / ah,  ww * log(w / aw),  wh * log(h / ah)
// (Girshick et al. 2014). Decoding divides by the weights and clips the last two to `clip` before the exponential.
struct BoxCoder {
  float wx = 1, wy = 1, ww = 1, wh = 1;
  float clip = 4.135166556742356f;  // log(1000 / 16)
  // Inclusive corners: sizes are x2 - x1 + 1, as in the original Detectron and early TensorPack.
  bool plus_one = false;
};

// All throw Error for mismatched shapes or types, or a weight that is not positive.
//
// boxes [n, 4], anchors [n, 4] -> deltas [n, 4], f32. An anchor of zero area gives non-finite deltas.
void encode_boxes(Context& context, const Tensor& boxes, const Tensor& anchors, const BoxCoder& coder,
                  const Tensor& deltas);
// deltas [n, k, 4] of any floating-point type, anchors [n, 4] f32 -> boxes [n, k, 4] f32. `limits`: undefined, or
// [images, 2] f32, height and width of each image, to which boxes are clipped; each image has n / images consecutive
// rows.
void decode_boxes(Context& context, const Tensor& deltas, const Tensor& anchors, const Tensor& limits,
                  const BoxCoder& coder, const Tensor& boxes);
// boxes [m, 4], others [n, 4] -> intersection over union [m, n], f32; 0 if both areas are 0.
void box_iou(Context& context, const Tensor& boxes, const Tensor& others, bool plus_one, const Tensor& iou);

}  // namespace dtrain
