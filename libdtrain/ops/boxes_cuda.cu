// CUDA kernels of box ops: one thread per box or pair of boxes.
#include "libdtrain/cuda/kernels.cuh"
#include "libdtrain/ops/box_math.h"
#include "libdtrain/ops/boxes_kernels.h"

namespace dtrain::cuda {
namespace {

// Grid-stride loop: body(i) over [0, count).
template <class Body>
__device__ void for_each(int64_t count, Body&& body) {
  const int64_t threads = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count; i += threads) body(i);
}

LaunchShape shape_for(const Context& context, int64_t count) {
  return {blocks_for(context, count, kThreads), kThreads};
}

__global__ void __launch_bounds__(kThreads)
    encode_kernel(BoxCoder coder, int64_t count, const float* boxes, const float* anchors, float* deltas) {
  for_each(count, [&](int64_t i) {
    const BoxDeltas d = encode_box(coder, box_at(boxes + 4 * i), box_at(anchors + 4 * i));
    float* const to = deltas + 4 * i;
    to[0] = d.x, to[1] = d.y, to[2] = d.w, to[3] = d.h;
  });
}

// `k` deltas per anchor; `limits`: null, or one image per `rows` anchors.
template <class T>
__global__ void __launch_bounds__(kThreads)
    decode_kernel(BoxCoder coder, int64_t count, int64_t k, const T* deltas, const float* anchors, const float* limits,
                  int64_t rows, float* boxes) {
  const float margin = size_margin(coder.plus_one);
  for_each(count, [&](int64_t i) {
    const T* const d = deltas + 4 * i;
    const int64_t row = i / k;
    Box box =
        decode_box(coder, {to_float(d[0]), to_float(d[1]), to_float(d[2]), to_float(d[3])}, box_at(anchors + 4 * row));
    const float* const size = limits != nullptr ? limits + 2 * (row / rows) : nullptr;
    if (size != nullptr) box = clip_box(box, size[0], size[1], margin);
    float* const to = boxes + 4 * i;
    to[0] = box.x1, to[1] = box.y1, to[2] = box.x2, to[3] = box.y2;
  });
}

__global__ void __launch_bounds__(kThreads)
    iou_kernel(float margin, int64_t count, int64_t n, const float* boxes, const float* others, float* iou) {
  for_each(count, [&](int64_t i) {
    const Box box = box_at(boxes + 4 * (i / n)), other = box_at(others + 4 * (i % n));
    iou[i] = box_overlap(box, box_area(box, margin), other, box_area(other, margin), margin);
  });
}

}  // namespace

void encode_boxes(Context& context, const Tensor& boxes, const Tensor& anchors, const BoxCoder& coder,
                  const Tensor& deltas) {
  launch(context, encode_kernel, shape_for(context, boxes.dim(0)), coder, boxes.dim(0), boxes.data<float>(),
         anchors.data<float>(), deltas.data<float>());
}

void decode_boxes(Context& context, const Tensor& deltas, const Tensor& anchors, const Tensor& limits,
                  const BoxCoder& coder, const Tensor& boxes) {
  const int64_t count = deltas.dim(0) * deltas.dim(1);
  dispatch_floating(deltas.dtype(), "decode_boxes", [&]<class T>(T) {
    launch(context, decode_kernel<T>, shape_for(context, count), coder, count, deltas.dim(1), deltas.data<T>(),
           anchors.data<float>(), limits ? limits.data<float>() : nullptr, limits ? deltas.dim(0) / limits.dim(0) : 1,
           boxes.data<float>());
  });
}

void box_iou(Context& context, const Tensor& boxes, const Tensor& others, bool plus_one, const Tensor& iou) {
  launch(context, iou_kernel, shape_for(context, iou.count()), size_margin(plus_one), iou.count(), others.dim(0),
         boxes.data<float>(), others.data<float>(), iou.data<float>());
}

}  // namespace dtrain::cuda
