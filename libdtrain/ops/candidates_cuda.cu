// CUDA kernels of detection candidates: one thread per box or score.
#include "libdtrain/cuda/kernels.cuh"
#include "libdtrain/ops/candidates.h"
#include "libdtrain/ops/candidates_math.h"

namespace dtrain::cuda {
namespace {

__global__ void __launch_bounds__(kThreads)
    drop_small_boxes_kernel(int64_t count, const float* boxes, float min_side, float* scores) {
  const int64_t threads = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count; i += threads)
    if (is_small(boxes + 4 * i, min_side)) scores[i] = kNoScore;
}

// Scores of image blockIdx.y. The count is an integer sum, independent of order.
__global__ void __launch_bounds__(kThreads)
    class_candidates_kernel(int64_t width, int64_t c, const float* probabilities, const int32_t* counts,
                            float threshold, float* scores, int32_t* passed) {
  const int64_t image = blockIdx.y, threads = int64_t{gridDim.x} * kThreads;
  const int32_t count = counts[image];
  int32_t above = 0;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < width; i += threads) {
    const float score = candidate_score(probabilities[image * width + i], i, c, count, threshold);
    scores[image * width + i] = score;
    above += score > kNoScore;
  }
  above = block_sum(above, shared_memory<int32_t>());
  if (threadIdx.x == 0 && above > 0) atomicAdd(passed + image, above);
}

// One thread per score of [n, c, p].
__global__ void __launch_bounds__(kThreads)
    scores_by_class_kernel(int64_t count, int64_t c, int64_t p, const float* probabilities, float threshold,
                           float* scores) {
  const int64_t threads = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count; i += threads) {
    const int64_t row = i / p, kind = row % c;
    scores[i] = class_score(probabilities[(row / c * p + i % p) * c + kind], kind, threshold);
  }
}

__global__ void __launch_bounds__(kThreads)
    candidate_classes_kernel(int64_t count, const int32_t* indices, int32_t c, int32_t* classes) {
  const int64_t threads = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count; i += threads)
    classes[i] = class_of(indices[i], c);
}

}  // namespace

void drop_small_boxes(Context& context, const Tensor& boxes, float min_side, const Tensor& scores) {
  if (scores.count() == 0) return;
  launch(context, drop_small_boxes_kernel, {blocks_for(context, scores.count(), kThreads), kThreads}, scores.count(),
         boxes.data<float>(), min_side, scores.data<float>());
}

void class_candidates(Context& context, const Tensor& probabilities, const Tensor& counts, float threshold,
                      const Tensor& scores, const Tensor& passed) {
  context.fill_zero(passed);
  if (scores.count() == 0) return;
  const auto images = static_cast<unsigned>(scores.dim(0));
  const unsigned blocks = std::max(blocks_for(context, scores.count(), kThreads) / images, 1u);
  launch(context, class_candidates_kernel, {{blocks, images}, kThreads, kThreads / kWarp * sizeof(int32_t)},
         scores.dim(1), probabilities.dim(1), probabilities.data<float>(), counts.data<int32_t>(), threshold,
         scores.data<float>(), passed.data<int32_t>());
}

void scores_by_class(Context& context, const Tensor& probabilities, float threshold, const Tensor& scores) {
  if (scores.count() == 0) return;
  launch(context, scores_by_class_kernel, {blocks_for(context, scores.count(), kThreads), kThreads}, scores.count(),
         scores.dim(1), scores.dim(2), probabilities.data<float>(), threshold, scores.data<float>());
}

void candidate_classes(Context& context, const Tensor& indices, int64_t c, const Tensor& classes) {
  if (indices.count() == 0) return;
  launch(context, candidate_classes_kernel, {blocks_for(context, indices.count(), kThreads), kThreads}, indices.count(),
         indices.data<int32_t>(), static_cast<int32_t>(c), classes.data<int32_t>());
}

}  // namespace dtrain::cuda
