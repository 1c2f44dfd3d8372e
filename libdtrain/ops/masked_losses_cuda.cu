// CUDA kernels of masked losses: two-stage reduction in double; one block sums the partial sums.
#include <cmath>

#include "dtrain/ops/masked_losses.h"
#include "libdtrain/core/divisor.h"
#include "libdtrain/cuda/kernels.cuh"
#include "libdtrain/ops/masked_losses_kernels.h"
#include "libdtrain/ops/masked_losses_math.h"

namespace dtrain::cuda {
namespace {

constexpr int64_t kPerBlock = 16 * kThreads, kSumBlocks = 1024;  // minimum of elements per block; maximum of blocks
constexpr size_t kScratchBytes = kThreads / kWarp * sizeof(double);

// Elements of a loss; each weight covers `per_weight` of them.
template <class T>
struct MaskedElements {
  uint32_t count;
  Divisor per_weight;
  const T* x;
  const float *targets, *weights;

  MaskedElements(const char* what, const Tensor& from, const Tensor& target, const Tensor& weight)
      : count(static_cast<uint32_t>(from.count())),
        per_weight(from.count() / weight.count()),
        x(from.data<T>()),
        targets(target.data<float>()),
        weights(weight.data<float>()) {
    DT_CHECK(from.count() < int64_t{1} << 31, what, ": ", from.shape(), ", expected fewer than 2^31 elements");
  }
  __device__ float weight(uint32_t i) const { return weights[per_weight.quotient(i)]; }
};

template <class T, class Term>
__global__ void __launch_bounds__(kThreads) masked_sums_kernel(MaskedElements<T> all, Term term, double* sums) {
  double sum = 0;
  for (uint32_t i = blockIdx.x * kThreads + threadIdx.x; i < all.count; i += gridDim.x * kThreads)
    if (const float weight = all.weight(i); weight != 0)
      sum += double{weight} * double{term(to_float(all.x[i]), all.targets[i]).value};
  sum = block_sum(sum, shared_memory<double>());
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(kThreads)
    masked_total_kernel(int blocks, const double* sums, float constant, const float* count, float* loss) {
  double sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < blocks; i += kThreads) sum += sums[i];
  sum = block_sum(sum, shared_memory<double>());
  if (threadIdx.x == 0) *loss = static_cast<float>(sum / double{loss_divisor(constant, count)});
}

template <class T, class Term>
__global__ void __launch_bounds__(kThreads) masked_grad_kernel(MaskedElements<T> all, Term term, const float* dloss,
                                                               float constant, const float* count, bool add, T* dx) {
  const float factor = *dloss / loss_divisor(constant, count);
  for (uint32_t i = blockIdx.x * kThreads + threadIdx.x; i < all.count; i += gridDim.x * kThreads) {
    const float weight = all.weight(i);
    if (add && weight == 0) continue;
    float d = weight == 0 ? 0.0f : factor * weight * term(to_float(all.x[i]), all.targets[i]).slope;
    if (add) d += to_float(dx[i]);
    dx[i] = from_float<T>(d);
  }
}

const float* count_of(const LossDivisor& divisor) { return divisor.count ? divisor.count.data<float>() : nullptr; }

template <class Term>
void masked_sum(Context& context, const char* what, const Tensor& x, const Tensor& targets, const Tensor& weights,
                const LossDivisor& divisor, const Term& term, const Tensor& loss) {
  const int64_t blocks = std::clamp<int64_t>(x.count() / kPerBlock, 1, kSumBlocks);
  const Tensor sums = context.empty({blocks * static_cast<int64_t>(sizeof(double))}, DType::u8);
  auto* const sum = static_cast<double*>(sums.raw());
  dispatch_floating(x.dtype(), what, [&]<class T>(T) {
    launch(context, masked_sums_kernel<T, Term>, {static_cast<unsigned>(blocks), kThreads, kScratchBytes},
           MaskedElements<T>(what, x, targets, weights), term, sum);
  });
  launch(context, masked_total_kernel, {1, kThreads, kScratchBytes}, static_cast<int>(blocks), sum, divisor.constant,
         count_of(divisor), loss.data<float>());
}

template <class Term>
void masked_grad(Context& context, const char* what, const Tensor& dloss, const Tensor& x, const Tensor& targets,
                 const Tensor& weights, const LossDivisor& divisor, const Term& term, const Tensor& dx, bool add) {
  dispatch_floating(x.dtype(), what, [&]<class T>(T) {
    launch(context, masked_grad_kernel<T, Term>, {blocks_for(context, x.count(), kThreads), kThreads},
           MaskedElements<T>(what, x, targets, weights), term, dloss.data<float>(), divisor.constant, count_of(divisor),
           add, dx.data<T>());
  });
}

// y [n, a, b] and x [n, a, k, b]
struct Selection {
  Divisor b, a;
  uint32_t count, k, width;  // elements of y, classes, and b

  Selection(const Shape& x)
      : b(std::max<int64_t>(x[3], 1)),
        a(std::max<int64_t>(x[1], 1)),
        count(static_cast<uint32_t>(x[0] * x[1] * x[3])),
        k(static_cast<uint32_t>(x[2])),
        width(static_cast<uint32_t>(x[3])) {
    DT_CHECK(x[0] * x[1] * x[3] < int64_t{1} << 31, "select_class: ", x, ", expected fewer than 2^31 elements chosen");
  }
  struct Place {
    uint32_t row, group, element;
  };
  __device__ Place at(uint32_t i) const {
    const uint32_t element = b.split(i), row = a.quotient(i);
    return {row, i, element};
  }
  __device__ int64_t in_x(const Place& at, int32_t chosen) const {
    return (int64_t{at.group} * k + chosen) * width + at.element;
  }
};

template <class T>
__global__ void __launch_bounds__(kThreads)
    select_class_kernel(Selection selection, const T* x, const int32_t* classes, T* y) {
  for (uint32_t i = blockIdx.x * kThreads + threadIdx.x; i < selection.count; i += gridDim.x * kThreads) {
    const auto at = selection.at(i);
    const int32_t chosen = classes[at.row];
    const bool exists = chosen < static_cast<int32_t>(selection.k);
    y[i] = chosen >= 0 && exists ? x[selection.in_x(at, chosen)] : from_float<T>(exists ? 0.0f : NAN);
  }
}

// Accumulates into zeroed or previous contents.
template <class T>
__global__ void __launch_bounds__(kThreads)
    select_class_grad_kernel(Selection selection, const T* dy, const int32_t* classes, T* dx) {
  for (uint32_t i = blockIdx.x * kThreads + threadIdx.x; i < selection.count; i += gridDim.x * kThreads) {
    const auto at = selection.at(i);
    const int32_t chosen = classes[at.row];
    if (chosen < 0 || chosen >= static_cast<int32_t>(selection.k)) continue;
    T* const to = dx + selection.in_x(at, chosen);
    *to = from_float<T>(to_float(*to) + to_float(dy[i]));
  }
}

}  // namespace

void sigmoid_cross_entropy(Context& context, const Tensor& x, const Tensor& targets, const Tensor& weights,
                           const LossDivisor& divisor, const Tensor& loss) {
  masked_sum(context, "sigmoid_cross_entropy", x, targets, weights, divisor, SigmoidCrossEntropyTerm(), loss);
}

void sigmoid_cross_entropy_grad(Context& context, const Tensor& dloss, const Tensor& x, const Tensor& targets,
                                const Tensor& weights, const LossDivisor& divisor, const Tensor& dx, bool add) {
  masked_grad(context, "sigmoid_cross_entropy_grad", dloss, x, targets, weights, divisor, SigmoidCrossEntropyTerm(), dx,
              add);
}

void smooth_l1(Context& context, const Tensor& x, const Tensor& targets, const Tensor& weights, float beta,
               const LossDivisor& divisor, const Tensor& loss) {
  masked_sum(context, "smooth_l1", x, targets, weights, divisor, SmoothL1Term{beta}, loss);
}

void smooth_l1_grad(Context& context, const Tensor& dloss, const Tensor& x, const Tensor& targets,
                    const Tensor& weights, float beta, const LossDivisor& divisor, const Tensor& dx, bool add) {
  masked_grad(context, "smooth_l1_grad", dloss, x, targets, weights, divisor, SmoothL1Term{beta}, dx, add);
}

void select_class(Context& context, const Tensor& x, const Tensor& classes, const Tensor& y) {
  if (y.count() == 0) return;
  dispatch_floating(x.dtype(), "select_class", [&]<class T>(T) {
    launch(context, select_class_kernel<T>, {blocks_for(context, y.count(), kThreads), kThreads}, Selection(x.shape()),
           x.data<T>(), classes.data<int32_t>(), y.data<T>());
  });
}

void select_class_grad(Context& context, const Tensor& dy, const Tensor& classes, const Tensor& dx, bool add) {
  if (!add) context.fill_zero(dx);
  if (dy.count() == 0) return;
  dispatch_floating(dx.dtype(), "select_class_grad", [&]<class T>(T) {
    launch(context, select_class_grad_kernel<T>, {blocks_for(context, dy.count(), kThreads), kThreads},
           Selection(dx.shape()), dy.data<T>(), classes.data<int32_t>(), dx.data<T>());
  });
}

}  // namespace dtrain::cuda
