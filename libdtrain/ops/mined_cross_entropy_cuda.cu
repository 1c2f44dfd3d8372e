// CUDA kernels of the mined cross-entropy: one block per image selects its negatives.
#include "dtrain/ops/mined_cross_entropy.h"
#include "libdtrain/cuda/kernels.cuh"
#include "libdtrain/ops/loss_math.h"
#include "libdtrain/ops/mined_cross_entropy_kernels.h"
#include "libdtrain/ops/selection_kernels.cuh"
#include "libdtrain/ops/top_k_math.h"

namespace dtrain::cuda {
namespace {

__global__ void __launch_bounds__(kSelectionThreads)
    mine_kernel(int64_t t, int64_t per_positive, const float* all_losses, const int32_t* all_labels, float* all_weights,
                float* all_positives, double* shares) {
  const int64_t first = int64_t{blockIdx.x} * t;
  const float* const losses = all_losses + first;
  const int32_t* const labels = all_labels + first;
  int found = 0;
  for (int64_t i = threadIdx.x; i < t; i += blockDim.x) found += labels[i] > 0;
  found = block_sum(found, shared_memory<int>());
  const auto key = [=](int64_t i) { return labels[i] > 0 ? uint64_t{0} : ScoreKey::of(losses[i], i); };
  const int64_t most = per_positive * found, wanted = most < t ? most : t;
  const Selection chosen = select_largest(t, static_cast<int>(wanted), key, *shared_memory<SelectionScratch>());
  const float weight = found > 0 ? 1.0f / static_cast<float>(found) : 0.0f;
  double sum = 0;
  for (int64_t i = threadIdx.x; i < t; i += blockDim.x) {
    const bool positive = labels[i] > 0;
    const bool counts = positive || (chosen.chosen > 0 && key(i) >= chosen.threshold);
    all_weights[first + i] = counts ? weight : 0.0f;
    all_positives[first + i] = positive ? weight : 0.0f;
    if (counts) sum += double{losses[i]};
  }
  __syncthreads();
  sum = block_sum(sum, shared_memory<double>());
  if (threadIdx.x == 0) shares[blockIdx.x] = found > 0 ? sum / found : 0.0;
}

__global__ void mean_of_shares_kernel(int64_t n, const double* shares, float* loss) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += shares[i];
  *loss = static_cast<float>(sum / static_cast<double>(n));
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    mined_grad_kernel(int64_t count, int64_t c, int64_t n, const float* dloss, const float* probabilities,
                      const int32_t* labels, const float* weights, bool add, T* dlogits) {
  const float factor = *dloss / static_cast<float>(n);
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count; i += int64_t{gridDim.x} * kThreads) {
    const int64_t row = i / c;
    const float weight = weights[row];
    const float gradient =
        weight == 0 ? 0.0f : cross_entropy_grad(factor * weight, probabilities[i], i % c == labels[row] ? 1.0f : 0.0f);
    dlogits[i] = from_float<T>(add ? to_float(dlogits[i]) + gradient : gradient);
  }
}

}  // namespace

void mine_negatives(Context& context, const Tensor& losses, const Tensor& labels, int negatives_per_positive,
                    const Tensor& weights, const Tensor& positives, const Tensor& loss) {
  const int64_t n = losses.dim(0);
  const Tensor shares = context.empty({n * static_cast<int64_t>(sizeof(double))}, DType::u8);
  auto* const share = static_cast<double*>(shares.raw());
  launch(context, mine_kernel, {static_cast<unsigned>(n), kSelectionThreads, sizeof(SelectionScratch)}, losses.dim(1),
         int64_t{negatives_per_positive}, losses.data<float>(), labels.data<int32_t>(), weights.data<float>(),
         positives.data<float>(), share);
  launch(context, mean_of_shares_kernel, {1, 1}, n, share, loss.data<float>());
}

void mined_cross_entropy_grad(Context& context, const Tensor& dloss, const Tensor& probabilities, const Tensor& labels,
                              const Tensor& weights, const Tensor& dlogits, bool add) {
  dispatch_floating(dlogits.dtype(), "mined_cross_entropy_grad", [&]<class T>(T) {
    launch(context, mined_grad_kernel<T>, {blocks_for(context, dlogits.count(), kThreads), kThreads}, dlogits.count(),
           probabilities.dim(1), labels.dim(0), dloss.data<float>(), probabilities.data<float>(),
           labels.data<int32_t>(), weights.data<float>(), add, dlogits.data<T>());
  });
}

}  // namespace dtrain::cuda
