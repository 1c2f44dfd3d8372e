#include "tests/emulation/libraries.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>

#include "libdtrain/cuda/library_versions.h"
#include "libdtrain/cuda/runtime.h"
#include "tests/emulation/emulation.h"

namespace dtrain::cuda {
namespace {

template <class T>
void widen(const void* from, const Tensor& to) {
  std::copy_n(static_cast<const T*>(from), to.count(), to.data<float>());
}

}  // namespace

Tensor read(Context& cpu, const void* from, Shape shape, DType dtype) {
  if (from == nullptr) return {};
  Tensor to = cpu.empty(shape);
  if (dtype == DType::f32) widen<float>(from, to);
  if (dtype == DType::bf16) widen<__nv_bfloat16>(from, to);
  if (dtype == DType::f16) widen<__half>(from, to);
  return to;
}

void write(const Tensor& from, void* to, DType dtype) {
  const float* values = from.data<float>();
  if (dtype == DType::f32) std::copy_n(values, from.count(), static_cast<float*>(to));
  if (dtype == DType::bf16) std::copy_n(values, from.count(), static_cast<__nv_bfloat16*>(to));
  if (dtype == DType::f16) std::copy_n(values, from.count(), static_cast<__half*>(to));
}

void queue(const Context& context, const std::function<void(Context&)>& work) {
  static const std::unique_ptr<Context> cpu = make_cpu_context();
  DT_CUDA(emulation::enqueue(context.runtime().compute(), [work] { work(*cpu); }));
}

std::vector<GpuLibrary> library_versions() { return {}; }

}  // namespace dtrain::cuda
