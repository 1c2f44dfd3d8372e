// CUDA kernel of gather_samples: one block per image, stable compaction by prefix counts.
#include "dtrain/ops/roi_samples.h"
#include "libdtrain/ops/box_math.h"
#include "libdtrain/ops/roi_samples_kernels.h"
#include "libdtrain/ops/selection_kernels.cuh"

namespace dtrain::cuda {
namespace {

struct Gathering {
  BoxCoder coder;
  int64_t t, g, s;
  const float* boxes;
  const int32_t* matched;
  const float* truth;
  const int32_t* truth_classes;
  float* rois;
  int32_t *images, *classes, *truths;
  float *deltas, *totals;
};

// Writes a row of region `box`, or padding if `match` is kIgnored.
__device__ void write_row(const Gathering& a, int64_t image, int64_t row, const Box& box, int32_t match) {
  const bool positive = match >= 0, padding = match == kIgnored;
  BoxDeltas deltas{};
  if (positive) deltas = encode_box(a.coder, box_at(a.truth + 4 * (image * a.g + match)), box);
  float *const roi = a.rois + 4 * row, *const delta = a.deltas + 4 * row;
  roi[0] = box.x1, roi[1] = box.y1, roi[2] = box.x2, roi[3] = box.y2;
  delta[0] = deltas.x, delta[1] = deltas.y, delta[2] = deltas.w, delta[3] = deltas.h;
  a.images[row] = padding ? -1 : static_cast<int32_t>(image);
  a.classes[row] = positive ? a.truth_classes[image * a.g + match] : padding ? -1 : 0;
  a.truths[row] = positive ? match : -1;
}

__global__ void __launch_bounds__(kSelectionThreads) gather_samples_kernel(Gathering a) {
  int* const scratch = shared_memory<int>();
  const int64_t image = blockIdx.x, first = image * a.s;
  int64_t rows = 0, positives = 0;
  for (const bool positive : {true, false}) {
    for (int64_t begin = 0; begin < a.t && rows < a.s; begin += blockDim.x) {
      const int64_t i = begin + threadIdx.x;
      const int32_t match = i < a.t ? a.matched[image * a.t + i] : kIgnored;
      const bool chosen = positive ? match >= 0 && match < a.g : match == kBackground;
      const BlockRank rank = block_rank(chosen, scratch);
      if (const int64_t row = rows + rank.before; chosen && row < a.s)
        write_row(a, image, first + row, box_at(a.boxes + 4 * (image * a.t + i)), match);
      rows += rank.total;
    }
    rows = rows < a.s ? rows : a.s;
    if (positive) positives = rows;
  }
  for (int64_t row = rows + threadIdx.x; row < a.s; row += blockDim.x)
    write_row(a, image, first + row, Box{}, kIgnored);
  if (threadIdx.x != 0) return;
  // Integers below 2^24 in f32: exact in any order.
  atomicAdd(a.totals, static_cast<float>(rows));
  atomicAdd(a.totals + 1, static_cast<float>(positives));
}

constexpr size_t kRankBytes = kSelectionThreads / kWarp * sizeof(int);

}  // namespace

void gather_samples(Context& context, const Tensor& boxes, const Tensor& matched, const Tensor& truth,
                    const Tensor& truth_classes, const BoxCoder& coder, const RoiSamples& samples) {
  const int64_t n = matched.dim(0);
  const Gathering gathering{coder,
                            matched.dim(1),
                            truth.dim(1),
                            samples.rois.dim(0) / n,
                            boxes.data<float>(),
                            matched.data<int32_t>(),
                            truth.data<float>(),
                            truth_classes.data<int32_t>(),
                            samples.rois.data<float>(),
                            samples.images.data<int32_t>(),
                            samples.classes.data<int32_t>(),
                            samples.truth.data<int32_t>(),
                            samples.deltas.data<float>(),
                            samples.totals.data<float>()};
  context.fill_zero(samples.totals);
  launch(context, gather_samples_kernel, {static_cast<unsigned>(n), kSelectionThreads, kRankBytes}, gathering);
}

}  // namespace dtrain::cuda
