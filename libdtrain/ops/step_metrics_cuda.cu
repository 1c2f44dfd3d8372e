// CUDA arm of the step metrics: one block, since a micro-batch has few rows.
#include "libdtrain/cuda/kernels.cuh"
#include "libdtrain/ops/step_metrics.h"

namespace dtrain::cuda {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads)
    add_step_metrics_kernel(const StepScalars* scalars, const float* loss, const float* in_top_1, const float* in_top_5,
                            int64_t count, bool add, float* row) {
  float top_1 = 0, top_5 = 0;
  for (int64_t i = threadIdx.x; i < count; i += kThreads) {
    top_1 += in_top_1[i];
    top_5 += in_top_5[i];
  }
  top_1 = block_sum(top_1, shared_memory<float>());
  top_5 = block_sum(top_5, shared_memory<float>());
  if (threadIdx.x != 0) return;
  if (!add) {
    row[kMetricRequests] = scalars->request;
    row[kMetricStep] = step_mark(scalars->step);
  }
  row[kMetricLoss] = (add ? row[kMetricLoss] : 0.0f) + *loss;
  row[kMetricInTop1] = (add ? row[kMetricInTop1] : 0.0f) + top_1;
  row[kMetricInTop5] = (add ? row[kMetricInTop5] : 0.0f) + top_5;
  row[kMetricRows] = (add ? row[kMetricRows] : 0.0f) + static_cast<float>(count);
}

__global__ void finish_step_metrics_kernel(const StepScalars* scalars, const float* norm, const float* metrics,
                                           int64_t rows, float* ring) {
  float* row = ring + scalars->step % static_cast<uint64_t>(rows) * kStepMetrics;
  for (int i = 0; i < kSummedMetrics; ++i) row[i] = metrics[i];
  row[kMetricNorm] = *norm;
  row[kMetricFinite] = static_cast<float>(scalars->finite);
  row[kMetricLossScale] = scalars->loss_scale;
  row[kMetricSkipped] = static_cast<float>(scalars->skipped);
}

}  // namespace

void add_step_metrics(Context& context, const Tensor& loss, const Tensor& in_top_1, const Tensor& in_top_5, bool add,
                      const Tensor& metrics) {
  launch(context, add_step_metrics_kernel, {1, kThreads, kThreads / kWarp * sizeof(float)}, context.scalars(),
         loss.data<float>(), in_top_1.data<float>(), in_top_5.data<float>(), in_top_1.count(), add,
         metrics.data<float>());
}

void finish_step_metrics(Context& context, const Tensor& norm, const Tensor& metrics, const Tensor& ring) {
  launch(context, finish_step_metrics_kernel, {1, 1}, context.scalars(), norm.data<float>(), metrics.data<float>(),
         ring.dim(0), ring.data<float>());
}

}  // namespace dtrain::cuda
