// CUDA kernels of claim_boxes: a block searches the best box of a ground truth, then one thread per image writes the
// matches.
#include "libdtrain/cuda/kernels.cuh"
#include "libdtrain/ops/box_math.h"
#include "libdtrain/ops/claim_boxes.h"
#include "libdtrain/ops/match_math.h"
#include "libdtrain/ops/top_k_math.h"

namespace dtrain::cuda {
namespace {

// `keys` [n, g], initially 0, become the largest ScoreKey of each ground truth's IoUs.
__global__ void __launch_bounds__(kThreads) claim_kernel(int64_t t, int64_t g, const float* boxes, const float* truth,
                                                         const int32_t* counts, unsigned long long* keys) {
  const int64_t image = blockIdx.y, i = blockIdx.x;
  if (i >= within(counts[image], g)) return;
  const Box own = box_at(truth + 4 * (image * g + i));
  const float area = box_area(own, 0);
  unsigned long long best = 0;
  for (int64_t j = threadIdx.x; j < t; j += kThreads) {
    const Box box = box_at(boxes + 4 * j);
    const float iou = box_overlap(box, box_area(box, 0), own, area, 0);
    const unsigned long long key = iou > 0 ? ScoreKey::of(iou, j) : 0;
    best = key > best ? key : best;
  }
  if (best != 0) atomicMax(keys + image * g + i, best);
}

__global__ void __launch_bounds__(kThreads) write_claims_kernel(int64_t n, int64_t t, int64_t g, const int32_t* counts,
                                                                const unsigned long long* keys, int32_t* matched) {
  const int64_t image = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (image >= n) return;
  for (int64_t i = within(counts[image], g) - 1; i >= 0; --i)
    if (const unsigned long long key = keys[image * g + i]; key != 0)
      matched[image * t + ScoreKey::index(key)] = static_cast<int32_t>(i);
}

}  // namespace

void claim_boxes(Context& context, const Tensor& boxes, const Tensor& truth, const Tensor& counts,
                 const Tensor& matched) {
  const int64_t n = matched.dim(0), t = matched.dim(1), g = truth.dim(1);
  const Tensor keys = context.zeros({n, g}, DType::i64);
  auto* const to = static_cast<unsigned long long*>(keys.raw());
  launch(context, claim_kernel, {{static_cast<unsigned>(g), static_cast<unsigned>(n)}, kThreads}, t, g,
         boxes.data<float>(), truth.data<float>(), counts.data<int32_t>(), to);
  launch(context, write_claims_kernel, {static_cast<unsigned>((n + kThreads - 1) / kThreads), kThreads}, n, t, g,
         counts.data<int32_t>(), to, matched.data<int32_t>());
}

}  // namespace dtrain::cuda
