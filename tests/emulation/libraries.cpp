// Stand-ins for the ops that call CUDA's libraries: the CPU arm in single precision, queued as a library's call is.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstring>

#include "libdtrain/cuda/cuda.h"
#include "libdtrain/cuda/cudnn_version.h"
#include "libdtrain/cuda/runtime.h"
#include "libdtrain/ops/conv2d.h"
#include "libdtrain/ops/matmul.h"
#include "tests/emulation/emulation.h"

namespace dtrain::cuda {
namespace {

// Memory of the device as a call of a library sees it. It does not keep it alive, as a graph does not either.
struct View {
  void* data;
  Shape shape;
  DType dtype;
};

View view(const Tensor& tensor) {
  return tensor ? View{tensor.raw(), tensor.shape(), tensor.dtype()} : View{nullptr, {}, DType::f32};
}

template <class T>
void widen(const View& from, float* to) {
  const auto* values = static_cast<const T*>(from.data);
  for (int64_t i = 0; i < from.shape.count(); ++i) to[i] = values[i];
}

template <class T>
void store(const float* from, const View& to, bool add) {
  auto* values = static_cast<T*>(to.data);
  for (int64_t i = 0; i < to.shape.count(); ++i) values[i] = add ? static_cast<float>(values[i]) + from[i] : from[i];
}

Tensor read(Context& cpu, const View& from) {
  if (from.data == nullptr) return {};
  Tensor to = cpu.empty(from.shape);
  if (from.dtype == DType::f32) widen<float>(from, to.data<float>());
  if (from.dtype == DType::bf16) widen<__nv_bfloat16>(from, to.data<float>());
  if (from.dtype == DType::f16) widen<__half>(from, to.data<float>());
  return to;
}

void write(const Tensor& from, const View& to, bool add) {
  if (to.dtype == DType::f32) store<float>(from.data<float>(), to, add);
  if (to.dtype == DType::bf16) store<__nv_bfloat16>(from.data<float>(), to, add);
  if (to.dtype == DType::f16) store<__half>(from.data<float>(), to, add);
}

// Queues op(cpu, a, b, c, result) on the compute stream; undefined inputs stay so.
template <class Op>
void queue(const Context& context, const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& result, bool add,
           Op op) {
  DT_CUDA(
      emulation::enqueue(context.runtime().compute(), [=, a = view(a), b = view(b), c = view(c), to = view(result)] {
        static const std::unique_ptr<Context> cpu = make_cpu_context();
        const Tensor from = cpu->empty(to.shape);
        op(*cpu, read(*cpu, a), read(*cpu, b), read(*cpu, c), from);
        write(from, to, add);
      }));
}

}  // namespace

void conv2d(Context& context, const Tensor& x, const Tensor& w, const Tensor& bias, const Conv2dOptions& options,
            const Tensor& y) {
  queue(context, x, w, bias, y, false,
        [options](Context& cpu, const Tensor& from, const Tensor& filters, const Tensor& shift, const Tensor& to) {
          cpu::conv2d(cpu, from, filters, shift, options, to);
        });
}

void conv2d_dgrad(Context& context, const Tensor& dy, const Tensor& w, const Conv2dOptions& options, const Tensor& dx,
                  bool add) {
  queue(context, dy, w, {}, dx, add,
        [options](Context& cpu, const Tensor& from, const Tensor& filters, const Tensor&, const Tensor& to) {
          cpu::conv2d_dgrad(cpu, from, filters, options, to, false);
        });
}

void conv2d_wgrad(Context& context, const Tensor& x, const Tensor& dy, const Conv2dOptions& options, const Tensor& dw,
                  bool add) {
  queue(context, x, dy, {}, dw, add,
        [options](Context& cpu, const Tensor& images, const Tensor& from, const Tensor&, const Tensor& to) {
          cpu::conv2d_wgrad(cpu, images, from, options, to, false);
        });
}

void linear(Context& context, const Tensor& x, const Tensor& w, const Tensor& bias, const Tensor& y) {
  queue(context, x, w, bias, y, false,
        [](Context& cpu, const Tensor& from, const Tensor& weights, const Tensor& shift, const Tensor& to) {
          cpu::linear(cpu, from, weights, shift, to);
        });
}

void linear_dgrad(Context& context, const Tensor& dy, const Tensor& w, const Tensor& dx, bool add) {
  queue(context, dy, w, {}, dx, add,
        [](Context& cpu, const Tensor& from, const Tensor& weights, const Tensor&, const Tensor& to) {
          cpu::linear_dgrad(cpu, from, weights, to, false);
        });
}

void linear_wgrad(Context& context, const Tensor& x, const Tensor& dy, const Tensor& dw, bool add) {
  queue(context, x, dy, {}, dw, add,
        [](Context& cpu, const Tensor& rows, const Tensor& from, const Tensor&, const Tensor& to) {
          cpu::linear_wgrad(cpu, rows, from, to, false);
        });
}

int cudnn_version_built() { return 0; }
int cudnn_version_loaded() { return 0; }

}  // namespace dtrain::cuda
