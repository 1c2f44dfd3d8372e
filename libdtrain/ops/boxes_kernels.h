// CPU and CUDA kernels of dtrain/ops/boxes.h.
#pragma once

#include "dtrain/ops/boxes.h"

namespace dtrain {

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
