// CUDA kernel of anchor targets: one thread per anchor.
#include "libdtrain/cuda/kernels.cuh"
#include "libdtrain/ops/anchor_targets.h"
#include "libdtrain/ops/anchor_targets_math.h"

namespace dtrain::cuda {
namespace {

// Sums integers below 2^24 in f32: exact in any order.
__global__ void __launch_bounds__(kThreads)
    anchor_targets_kernel(int64_t count, int64_t t, int64_t g, const int32_t* matched, const float* truth,
                          const float* anchors, BoxCoder coder, AnchorTargetPointers out, float* total) {
  const int64_t threads = int64_t{gridDim.x} * kThreads;
  float drawn = 0;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count; i += threads) {
    write_anchor_target(out, i, matched[i], truth + i / t * g * 4, anchors + i % t * 4, coder);
    drawn += is_drawn(matched[i]);
  }
  drawn = block_sum(drawn, shared_memory<float>());
  if (threadIdx.x == 0 && drawn > 0) atomicAdd(total, drawn);
}

}  // namespace

void anchor_targets(Context& context, const Tensor& matched, const Tensor& truth, const Tensor& anchors,
                    const BoxCoder& coder, const AnchorTargets& targets) {
  context.fill_zero(targets.count);
  if (matched.count() == 0) return;
  DT_CHECK(matched.count() < 1 << 24, "anchor_targets: ", matched.count(), " anchors; expected fewer than 2^24");
  launch(context, anchor_targets_kernel,
         {blocks_for(context, matched.count(), kThreads), kThreads, kThreads / kWarp * sizeof(float)}, matched.count(),
         matched.dim(1), truth.dim(1), matched.data<int32_t>(), truth.data<float>(), anchors.data<float>(), coder,
         AnchorTargetPointers{targets.labels.data<float>(), targets.drawn.data<float>(), targets.objects.data<float>(),
                              targets.deltas.data<float>()},
         targets.count.data<float>());
}

}  // namespace dtrain::cuda
