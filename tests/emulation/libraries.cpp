// Stand-ins for the ops that call CUDA's libraries: the CPU arm in single precision, queued as a library's call is.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <limits>

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

// Queues work(cpu) on the compute stream.
void queue(const Context& context, const std::function<void(Context&)>& work) {
  static const std::unique_ptr<Context> cpu = make_cpu_context();
  DT_CUDA(emulation::enqueue(context.runtime().compute(), [work] { work(*cpu); }));
}

// The first channels of each row.
Tensor without_padding(Context& cpu, const Tensor& filters, int64_t channels) {
  const Shape& shape = filters.shape();
  const Tensor first = cpu.empty({shape[0], shape[1], shape[2], channels});
  for (int64_t row = 0; row < first.count() / channels; ++row)
    std::copy_n(filters.data<float>() + row * shape[3], channels, first.data<float>() + row * channels);
  return first;
}

}  // namespace

void conv2d(Context& context, const Tensor& x, const Tensor& w, const Tensor& bias, const Conv2dOptions& options,
            const Tensor& y) {
  queue(context, [options, x = view(x), w = view(w), bias = view(bias), y = view(y)](Context& cpu) {
    const Tensor to = cpu.empty(y.shape);
    cpu::conv2d(cpu, read(cpu, x), read(cpu, w), read(cpu, bias), options, to);
    write(to, y, false);
  });
}

void conv2d_dgrad(Context& context, const Tensor& dy, const Tensor& w, const Conv2dOptions& options, const Tensor& dx,
                  bool add) {
  queue(context, [options, add, dy = view(dy), w = view(w), dx = view(dx)](Context& cpu) {
    const Tensor to = cpu.empty(dx.shape);
    cpu::conv2d_dgrad(cpu, read(cpu, dy), read(cpu, w), options, to, false);
    write(to, dx, add);
  });
}

void conv2d_wgrad(Context& context, const Tensor& x, const Tensor& dy, const Conv2dOptions& options, const Tensor& dw,
                  bool add) {
  queue(context, [options, add, x = view(x), dy = view(dy), dw = view(dw)](Context& cpu) {
    const Tensor to = cpu.empty({dw.shape[0], dw.shape[1], dw.shape[2], x.shape[3] / options.groups});
    cpu::conv2d_wgrad(cpu, read(cpu, x), read(cpu, dy), options, to, false);
    write(without_padding(cpu, to, dw.shape[3]), dw, add);
  });
}

// As the library: f16 only.
bool conv2d_with_statistics(Context& context, const Tensor& x, const Tensor& w, const Conv2dOptions& options,
                            const Tensor& y, const Tensor& sum, const Tensor& sum_of_squares) {
  if (y.dtype() != DType::f16) return false;
  conv2d(context, x, w, {}, options, y);
  queue(context, [y = view(y), sum = view(sum), sum_of_squares = view(sum_of_squares)](Context& cpu) {
    const Tensor values = read(cpu, y), sums = cpu.zeros(sum.shape), squares = cpu.zeros(sum.shape);
    const int64_t channels = sum.shape.count();
    for (int64_t i = 0; i < values.count(); ++i) {
      const float value = values.data<float>()[i];
      sums.data<float>()[i % channels] += value;
      squares.data<float>()[i % channels] += value * value;
    }
    write(sums, sum, false);
    write(squares, sum_of_squares, false);
  });
  return true;
}

float statistics_cost(Context&, const Tensor&, const Tensor&, const Conv2dOptions&, const Tensor& y, const Tensor&,
                      const Tensor&) {
  return y.dtype() == DType::f16 ? 0 : std::numeric_limits<float>::infinity();
}

void linear(Context& context, const Tensor& x, const Tensor& w, const Tensor& bias, const Tensor& y) {
  queue(context, [x = view(x), w = view(w), bias = view(bias), y = view(y)](Context& cpu) {
    const Tensor to = cpu.empty(y.shape);
    cpu::linear(cpu, read(cpu, x), read(cpu, w), read(cpu, bias), to);
    write(to, y, false);
  });
}

void linear_dgrad(Context& context, const Tensor& dy, const Tensor& w, const Tensor& dx, bool add) {
  queue(context, [add, dy = view(dy), w = view(w), dx = view(dx)](Context& cpu) {
    const Tensor to = cpu.empty(dx.shape);
    cpu::linear_dgrad(cpu, read(cpu, dy), read(cpu, w), to, false);
    write(to, dx, add);
  });
}

void linear_wgrad(Context& context, const Tensor& x, const Tensor& dy, const Tensor& dw, bool add) {
  queue(context, [add, x = view(x), dy = view(dy), dw = view(dw)](Context& cpu) {
    const Tensor to = cpu.empty(dw.shape);
    cpu::linear_wgrad(cpu, read(cpu, x), read(cpu, dy), to, false);
    write(to, dw, add);
  });
}

int cudnn_version_built() { return 0; }
int cudnn_version_loaded() { return 0; }

}  // namespace dtrain::cuda
