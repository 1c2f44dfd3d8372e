#include "dtrain/core/context.h"

#include <omp.h>

#include <cstring>

#include <dnnl.hpp>

#include "dtrain/core/profiler.h"
#include "dtrain/core/thread_count.h"
#include "libdtrain/core/cores.h"
#include "libdtrain/core/recording_thread.h"
#include "libdtrain/cpu/conv/algorithms.h"
#include "libdtrain/cpu/kernels/table.h"
#include "libdtrain/cpu/onednn/primitive_cache.h"

namespace dtrain {

Context::Context(Device device, std::shared_ptr<CachingAllocator> memory)
    : device_(device), memory_(std::move(memory)), recording_thread_(std::make_shared<RecordingThread>()) {}

void Context::refuse(const Tensor& x, const char* what) const {
  DT_CHECK(x, what, ": an undefined tensor");
  throw Error(concat(what, ": a tensor on ", x.device(), ", expected one on ", device_));
}

void Context::require(const Tensor& x, const void* host, const char* what) const {
  require(x, what);
  DT_CHECK(host != nullptr || x.bytes() == 0, what, ": ", x.bytes(), " bytes at a null address of the host");
}

Tensor Context::zeros(Shape shape, DType dtype) {
  Tensor result = empty(shape, dtype);
  fill_zero(result);
  return result;
}

void Context::name_work(const char* name) {
  if (profiler_) profiler_->phase(name);
}

std::shared_ptr<cuda::StepGraph> Context::capture(const std::function<void()>&) {
  throw Error(concat("a step cannot be captured on ", device_, ": CUDA graphs need a GPU"));
}

std::vector<Event> Context::launch(cuda::StepGraph&) { throw Error(concat("no CUDA graphs on ", device_)); }

void Context::run_or_skip(const Tensor& count, float, const std::function<void()>& work) {
  require(count, "run_or_skip");
  DT_CHECK(count.count() == 1 && count.dtype() == DType::f32, "run_or_skip: a count ", count.shape(), " of ",
           count.dtype(), ", expected one element of f32");
  work();
}

CpuIsa Context::isa() const {
  DT_CHECK(kernels_ != nullptr, "the instruction set of a CPU asked of ", device_);
  return isa_;
}

const cpu::Kernels& Context::kernels() const {
  DT_CHECK(kernels_ != nullptr, "the kernels of a CPU asked of ", device_);
  return *kernels_;
}

cpu::PrimitiveCache& Context::primitives() const {
  DT_CHECK(primitives_ != nullptr, "oneDNN primitives asked of ", device_);
  return *primitives_;
}

cuda::Runtime& Context::runtime() const {
  DT_CHECK(runtime_ != nullptr, "a CUDA stream asked of ", device_);
  return *runtime_;
}

namespace {

// memcpy may not be given the null address of an empty tensor, not even for no bytes.
void copy_bytes(const void* from, void* to, size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

// OpenMP may give a parallel region fewer threads than it is asked for, as OMP_THREAD_LIMIT says. A barrier of oneDNN
// waits for as many as omp_get_max_threads() says, and then it waits for ever.
int granted_threads(int wanted) {
  const ThreadCount asked(wanted);
  int granted = 1;
#pragma omp parallel num_threads(wanted)
#pragma omp single
  granted = omp_get_num_threads();
  return granted;
}

// The set that is asked for, or the best. oneDNN can be told once, before its first primitive.
CpuIsa chosen_isa(std::optional<CpuIsa> asked) {
  const CpuIsa best = best_cpu_isa();
  DT_CHECK(!asked || *asked <= best, "a CPU context of ", name_of(*asked), ": this processor has ", name_of(best),
           " at most");
  const CpuIsa isa = asked.value_or(best);
  if (isa <= CpuIsa::avx2) dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx2);
  if (isa == CpuIsa::avx512) dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx512_core);
  if (isa == CpuIsa::avx512_vnni && best > isa) dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx512_core_vnni);
  if (isa == CpuIsa::avx512_bf16 && best > isa) dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx512_core_bf16);
  return isa;
}

void require_algorithm(const std::string& name) {
  std::string names;
  for (const std::string& one : cpu::conv_algorithm_names()) {
    if (name.empty() || name == one) return;
    names += (names.empty() ? "" : ", ") + one;
  }
  throw Error(concat("CpuOptions::conv_algorithm or DTRAIN_CPU_CONV is \"", name, "\": expected one of ", names));
}

class CpuContext final : public Context {
 public:
  explicit CpuContext(CpuOptions options)
      : Context({DeviceKind::cpu, 0},
                std::make_shared<CachingAllocator>(std::make_unique<HostAllocator>(), options.memory_cap)) {
    DT_CHECK(options.threads >= 0 && options.threads <= kMaxThreads, "a CPU context of ", options.threads,
             " threads, expected 0 to ", kMaxThreads);
    const int wanted = options.threads > 0 ? options.threads : omp_get_max_threads();
    DT_CHECK(wanted >= 1 && wanted <= kMaxThreads, "OMP_NUM_THREADS asks for ", wanted, " threads, expected 1 to ",
             kMaxThreads);
    if (wanted > 1) require_threads(wanted - 1);  // beside the caller
    threads_ = granted_threads(wanted);
    if (threads_ < wanted)
      notices_.push_back(concat("OpenMP grants ", threads_, " of ", wanted, " compute threads (OMP_THREAD_LIMIT is ",
                                omp_get_thread_limit(), ")"));
    isa_ = chosen_isa(options.isa);
    kernels_ = &cpu::kernels_of(isa_);
    require_algorithm(options.conv_algorithm);
    conv_algorithm_ = options.conv_algorithm;
    primitives_ = std::make_shared<cpu::PrimitiveCache>();
    scalars_ = &host_scalars_;
  }

  std::shared_ptr<Allocator> host_allocator() override { return memory_; }
  void fill_zero(const Tensor& x) override {
    require(x, "fill_zero");
    if (x.bytes() > 0) std::memset(x.raw(), 0, x.bytes());
  }
  void copy(const Tensor& from, const Tensor& to) override {
    require(from, "copy");
    require(to, "copy");
    DT_CHECK(from.bytes() == to.bytes(), "copy: ", from.bytes(), " bytes into ", to.bytes());
    copy_bytes(from.raw(), to.raw(), from.bytes());
  }
  void upload(const void* from, const Tensor& to, Stream) override {
    require(to, from, "upload");
    copy_bytes(from, to.raw(), to.bytes());
  }
  Event download_later(const Tensor& from, void* to) override {
    require(from, to, "download_later");
    copy_bytes(from.raw(), to, from.bytes());
    return record(Stream::compute);
  }
  Event record(Stream) override { return {nullptr, std::chrono::steady_clock::now()}; }
  void wait(const Event&) override {}
  void wait(Stream, const Event&) override {}
  bool is_past(const Event&) override { return true; }
  double seconds_between(const Event& from, const Event& to) override {
    return std::chrono::duration<double>(to.when - from.when).count();
  }
  void download(const Tensor& from, void* to, const char* what) override {
    refuse_while_capturing(what);
    require(from, to, what);
    copy_bytes(from.raw(), to, from.bytes());
  }
  void synchronize(const char* what) override { refuse_while_capturing(what); }
  void set_scalars(const StepInputs& values) override { static_cast<StepInputs&>(host_scalars_) = values; }
  void set_step_state(const StepState& values) override { static_cast<StepState&>(host_scalars_) = values; }
  StepScalars get_scalars() override { return host_scalars_; }

 private:
  StepScalars host_scalars_;
};

void require_instructions() {
#if defined(__AVX2__) && defined(__FMA__)
  DT_CHECK(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"),
           "this processor has no AVX2 or no FMA, which all builds need: one of 2013 or later has both");
#endif
}

}  // namespace

std::unique_ptr<Context> make_cpu_context(CpuOptions options) {
  require_instructions();
  return std::make_unique<CpuContext>(options);
}

#ifndef DTRAIN_WITH_CUDA
int cuda_device_count(std::string* reason) {
  if (reason) *reason = "built without CUDA; configure with -DDTRAIN_CUDA=ON";
  return 0;
}

std::unique_ptr<Context> make_cuda_context(const CudaOptions&) {
  throw Error("no GPU: built without CUDA; configure with -DDTRAIN_CUDA=ON");
}
#endif

}  // namespace dtrain
