// CUDA kernels of the softmax cross-entropy. A warp or block processes a row in a few passes, from L1 after the first,
// with reductions in fixed order. Rows are few and unaligned: 16-byte accesses would not help.
#include <cmath>

#include "dtrain/ops/loss.h"
#include "libdtrain/cuda/kernels.cuh"
#include "libdtrain/ops/loss_kernels.h"
#include "libdtrain/ops/loss_math.h"

namespace dtrain::cuda {
namespace {

constexpr int kWarps = kThreads / kWarp;
[[maybe_unused]] constexpr int kBlocks = 4;  // resident per multiprocessor: limits registers

// Threads of a row: a warp or the block.
template <int threads>
struct RowTeam {
  static constexpr int kRows = kThreads / threads;  // per block

  __device__ static int rank() { return static_cast<int>(threadIdx.x) % threads; }
  // body(row) for the team's rows of n; called by the whole team.
  template <class Body>
  __device__ static void for_each_row(int64_t n, Body&& body) {
    const int64_t teams = int64_t{gridDim.x} * kRows;
    for (int64_t row = int64_t{blockIdx.x} * kRows + threadIdx.x / threads; row < n; row += teams) body(row);
  }
  // body(c) for this thread's classes of a row.
  template <class Body>
  __device__ static void for_each_class(int64_t classes, Body&& body) {
    for (int64_t c = rank(); c < classes; c += threads) body(c);
  }
  template <class T>
  __device__ static T sum(T x) {
    if constexpr (threads == kWarp)
      return warp_sum(x);
    else
      return block_sum(x, shared_memory<T>());
  }
  __device__ static float max(float x) {
    x = warp_max(x);
    if constexpr (threads > kWarp) {
      float* const scratch = shared_memory<float>();
      __syncthreads();
      if (threadIdx.x % kWarp == 0) scratch[threadIdx.x / kWarp] = x;
      __syncthreads();
      x = warp_max(scratch[threadIdx.x % kWarps]);
    }
    return x;
  }
};

struct Targets {
  const int32_t *labels, *partners;
  const float* shares;

  Targets(const Tensor& label, const SoftmaxCrossEntropyOptions& options)
      : labels(label.data<int32_t>()),
        partners(options.partners ? options.partners.data<int32_t>() : nullptr),
        shares(options.shares ? options.shares.data<float>() : nullptr) {}
  __device__ LabelPair of(int64_t n, int64_t row) const { return labels_of(labels, partners, shares, n, row); }
};

// Sums over a row's logits, shifted by the maximum against overflow.
struct RowSums {
  float largest, log_sum, mean;
};

// y = softmax(z)
template <int threads, class T>
__device__ RowSums softmax_row(const T* z, int64_t classes, float* y) {
  using Team = RowTeam<threads>;
  RowSums result{-INFINITY, 0, 0};
  // fmaxf ignores NaN, but the sum propagates it.
  Team::for_each_class(classes, [&](int64_t c) { result.largest = fmaxf(result.largest, to_float(z[c])); });
  result.largest = Team::max(result.largest);
  float sum = 0, shifts = 0;
  Team::for_each_class(classes, [&](int64_t c) {
    const float shifted = to_float(z[c]) - result.largest;
    shifts += shifted;
    sum += y[c] = expf(shifted);
  });
  sum = Team::sum(sum);
  const float scale = 1 / sum;
  Team::for_each_class(classes, [&](int64_t c) { y[c] *= scale; });
  result.log_sum = logf(sum);
  result.mean = Team::sum(shifts) / static_cast<float>(classes);
  return result;
}

template <int threads, class T>
__global__ void __launch_bounds__(kThreads, kBlocks)
    softmax_kernel(int64_t n, int64_t classes, const T* logits, float* y) {
  RowTeam<threads>::for_each_row(
      n, [&](int64_t row) { softmax_row<threads>(logits + row * classes, classes, y + row * classes); });
}

template <int threads, class T>
__global__ void __launch_bounds__(kThreads, kBlocks)
    cross_entropy_kernel(int64_t n, int64_t classes, float smoothing, Targets targets, const T* logits,
                         float* probabilities, float* rows, float* in_top_1, float* in_top_5, float* counts) {
  using Team = RowTeam<threads>;
  Team::for_each_row(n, [&](int64_t row) {
    const T* const z = logits + row * classes;
    const RowSums sums = softmax_row<threads>(z, classes, probabilities + row * classes);
    const LabelPair pair = targets.of(n, row);
    const int64_t label = pair.main;
    const bool is_class = 0 <= label && label < classes && pair.other < classes;
    const float own = is_class ? to_float(z[label]) : 0.0f;
    const float other = is_class && pair.other >= 0 ? to_float(z[pair.other]) : 0.0f;
    int rank = 0;
    if (is_class)
      Team::for_each_class(classes, [&](int64_t c) { rank += c != label && outranks(to_float(z[c]), c, own, label); });
    rank = Team::sum(rank);
    if (Team::rank() != 0) return;
    const float logit = mixed_logit(pair, own - sums.largest, other - sums.largest);
    rows[row] = is_class ? cross_entropy(sums.log_sum, logit, sums.mean, smoothing) : label < 0 ? 0.0f : NAN;
    in_top_1[row] = is_class ? hit(rank, 1, own) : 0.0f;
    in_top_5[row] = is_class ? hit(rank, 5, own) : 0.0f;
    counts[row] = label < 0 ? 0.0f : 1.0f;
  });
}

// One block: mean over unmasked rows and its divisor, max(rows, 1).
__global__ void __launch_bounds__(kThreads, kBlocks)
    mean_loss_kernel(int64_t n, const float* rows, const int32_t* labels, float* divisor, float* loss) {
  float sum = 0;
  int count = 0;
  for (int64_t row = threadIdx.x; row < n; row += kThreads) {
    sum += rows[row];
    count += labels[row] >= 0;
  }
  sum = block_sum(sum, shared_memory<float>());
  count = block_sum(count, shared_memory<int>());
  if (threadIdx.x != 0) return;
  *divisor = static_cast<float>(count > 0 ? count : 1);
  *loss = sum / *divisor;
}

template <int threads, class T>
__global__ void __launch_bounds__(kThreads, kBlocks)
    cross_entropy_grad_kernel(int64_t n, int64_t classes, float smoothing, Targets targets, const float* dloss,
                              const float* probabilities, const float* divisor, bool add, T* dlogits) {
  const float factor = *dloss / *divisor;
  RowTeam<threads>::for_each_row(n, [&](int64_t row) {
    const float* const p = probabilities + row * classes;
    T* const dz = dlogits + row * classes;
    const LabelPair pair = targets.of(n, row);
    const bool known = pair.main < classes && pair.other < classes;
    RowTeam<threads>::for_each_class(classes, [&](int64_t c) {
      const float target = known ? smoothed_target(share_of(pair, c), classes, smoothing) : NAN;
      const float d = pair.main < 0 ? 0.0f : cross_entropy_grad(factor, p[c], target);
      dz[c] = from_float<T>(add ? to_float(dz[c]) + d : d);
    });
  });
}

constexpr size_t kScratchBytes = kWarps * sizeof(float);

// body(T(), launch shape, threads per row)
template <class Body>
void dispatch_rows(Context& context, const char* what, const Tensor& logits, Body&& body) {
  constexpr int64_t kFewClasses = 128;
  const int64_t n = logits.dim(0);
  dispatch_floating(logits.dtype(), what, [&]<class T>(T type) {
    if (logits.dim(1) <= kFewClasses)
      body(type, LaunchShape{blocks_for(context, n * kWarp, kThreads), kThreads}, std::integral_constant<int, kWarp>());
    else
      body(type, LaunchShape{blocks_for(context, n * kThreads, kThreads), kThreads, kScratchBytes},
           std::integral_constant<int, kThreads>());
  });
}

}  // namespace

void softmax_cross_entropy(Context& context, const Tensor& logits, const Tensor& labels,
                           const SoftmaxCrossEntropyOptions& options, const Tensor& probabilities,
                           const Tensor& divisor, const Classification& result) {
  const int64_t n = logits.dim(0), classes = logits.dim(1);
  float* const rows = result.rows.data<float>();
  dispatch_rows(context, "softmax_cross_entropy", logits,
                [&]<class T, int threads>(T, const LaunchShape& shape, std::integral_constant<int, threads>) {
                  launch(context, cross_entropy_kernel<threads, T>, shape, n, classes, options.label_smoothing,
                         Targets(labels, options), logits.data<T>(), probabilities.data<float>(), rows,
                         result.in_top_1.data<float>(), result.in_top_5.data<float>(), result.counts.data<float>());
                });
  launch(context, mean_loss_kernel, {1, kThreads, kScratchBytes}, n, rows, labels.data<int32_t>(),
         divisor.data<float>(), result.loss.value.data<float>());
}

void softmax_cross_entropy_grad(Context& context, const Tensor& dloss, const Tensor& probabilities,
                                const Tensor& divisor, const Tensor& labels, const SoftmaxCrossEntropyOptions& options,
                                const Tensor& dlogits, bool add) {
  dispatch_rows(context, "softmax_cross_entropy_grad", dlogits,
                [&]<class T, int threads>(T, const LaunchShape& shape, std::integral_constant<int, threads>) {
                  launch(context, cross_entropy_grad_kernel<threads, T>, shape, dlogits.dim(0), dlogits.dim(1),
                         options.label_smoothing, Targets(labels, options), dloss.data<float>(),
                         probabilities.data<float>(), divisor.data<float>(), add, dlogits.data<T>());
                });
}

void softmax(Context& context, const Tensor& logits, const Tensor& y) {
  dispatch_rows(context, "softmax", logits,
                [&]<class T, int threads>(T, const LaunchShape& shape, std::integral_constant<int, threads>) {
                  launch(context, softmax_kernel<threads, T>, shape, logits.dim(0), logits.dim(1), logits.data<T>(),
                         y.data<float>());
                });
}

}  // namespace dtrain::cuda
