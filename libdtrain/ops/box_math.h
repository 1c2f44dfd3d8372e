// Box arithmetic, shared by the CPU and CUDA kernels: IoUs are bitwise equal, so that comparisons of IoUs agree.
#pragma once

#include <cmath>

#include "dtrain/core/host_device.h"
#include "dtrain/ops/boxes.h"

namespace dtrain {

struct Box {
  float x1, y1, x2, y2;
};

DT_HD inline Box box_at(const float* corners) { return {corners[0], corners[1], corners[2], corners[3]}; }

DT_HD inline float smaller(float a, float b) { return b < a ? b : a; }
DT_HD inline float larger(float a, float b) { return a < b ? b : a; }

// Offset of a box's size from the difference of its corners.
DT_HD constexpr float size_margin(bool plus_one) { return plus_one ? 1.0f : 0.0f; }

// a * b, rounded. A plain product might be contracted into an FMA by one compiler and not by the other.
DT_HD inline float rounded_product(float a, float b) { return std::fma(a, b, 0.0f); }

DT_HD inline float box_area(const Box& box, float margin) {
  return rounded_product(box.x2 - box.x1 + margin, box.y2 - box.y1 + margin);
}

// `area_a` and `area_b`: areas of `a` and `b`. Branch-free, so that loops over boxes vectorise.
DT_HD inline float box_overlap(const Box& a, float area_a, const Box& b, float area_b, float margin) {
  const float width = smaller(a.x2, b.x2) - larger(a.x1, b.x1) + margin;
  const float height = smaller(a.y2, b.y2) - larger(a.y1, b.y1) + margin;
  const float shared = rounded_product(larger(width, 0), larger(height, 0));
  const float ratio = shared / (area_a + area_b - shared);
  return shared > 0 ? ratio : 0.0f;
}

// Padding rows are zeros.
DT_HD inline bool is_padding(const Box& box) { return box.x1 == 0 && box.y1 == 0 && box.x2 == 0 && box.y2 == 0; }

// Whether a box lies within an image of this height and width.
DT_HD inline bool is_inside(const Box& box, float height, float width, float margin) {
  return box.x1 >= 0 && box.y1 >= 0 && box.x2 + margin <= width && box.y2 + margin <= height;
}

struct BoxDeltas {
  float x, y, w, h;
};

struct CentredBox {
  float x, y, w, h;
};

DT_HD inline CentredBox centred(const Box& box, float margin) {
  const float w = box.x2 - box.x1 + margin, h = box.y2 - box.y1 + margin;
  return {box.x1 + 0.5f * w, box.y1 + 0.5f * h, w, h};
}

DT_HD inline BoxDeltas encode_box(const BoxCoder& coder, const Box& box, const Box& anchor) {
  const CentredBox to = centred(box, size_margin(coder.plus_one)), from = centred(anchor, size_margin(coder.plus_one));
  return {coder.wx * ((to.x - from.x) / from.w), coder.wy * ((to.y - from.y) / from.h),
          coder.ww * std::log(to.w / from.w), coder.wh * std::log(to.h / from.h)};
}

// NaN is propagated, so that divergence is visible.
DT_HD inline Box decode_box(const BoxCoder& coder, const BoxDeltas& deltas, const Box& anchor) {
  const float margin = size_margin(coder.plus_one), dw = deltas.w / coder.ww, dh = deltas.h / coder.wh;
  const CentredBox from = centred(anchor, margin);
  const float x = deltas.x / coder.wx * from.w + from.x, y = deltas.y / coder.wy * from.h + from.y;
  const float half_w = 0.5f * (std::exp(dw > coder.clip ? coder.clip : dw) * from.w);
  const float half_h = 0.5f * (std::exp(dh > coder.clip ? coder.clip : dh) * from.h);
  return {x - half_w, y - half_h, x + half_w - margin, y + half_h - margin};
}

DT_HD inline float clip_coordinate(float x, float last) { return x < 0 ? 0 : x > last ? last : x; }

DT_HD inline Box clip_box(const Box& box, float height, float width, float margin) {
  return {clip_coordinate(box.x1, width - margin), clip_coordinate(box.y1, height - margin),
          clip_coordinate(box.x2, width - margin), clip_coordinate(box.y2, height - margin)};
}

}  // namespace dtrain
