// From flags to contexts.
#include "apps/cli/machine.h"

#include <algorithm>
#include <filesystem>

#include <unistd.h>

#include <fmt/format.h>

#include "apps/cli/environment.h"
#include "libdtrain/core/cores.h"
#include "libdtrain/core/gpu_info.h"

namespace dtrain::cli {

std::unique_ptr<Context> Machine::make_context() const {
  // OpenMP knows nothing of quotas.
  if (!gpu) return make_cpu_context({.threads = threads_are_chosen(threads) ? threads : usable_cores()});
  CudaOptions options;
  options.device = index;
  options.deterministic = deterministic;
  options.tf32 = tf32;
  options.memory_cap = memory_limit;
  if (memory_limit == 0 && memory_share > 0)
    options.memory_cap = static_cast<size_t>(memory_share * static_cast<double>(gpu_info(index).memory));
  options.autotune = !trial;
  const std::string cache = cache_directory();
  if (!trial && !cache.empty()) {
    std::error_code ignored;  // the context reports a plan file that cannot be written
    std::filesystem::create_directories(cache, ignored);
    options.plan_file = cache + "/convolution_plans";
  }
  return make_cuda_context(with_environment(options));
}

bool threads_are_chosen(int64_t threads) { return threads > 0 || environment()("OMP_NUM_THREADS") != nullptr; }

ComputeOptions Machine::compute() const {
  constexpr int kPixelBytes = 16;
  return {precision, gpu ? kPixelBytes / static_cast<int>(size_of(precision)) : 3};
}

int gpu_of_rank(int local_rank) { return local_rank < cuda_device_count() ? local_rank : 0; }

std::string why_no_gpu(int index) {
  std::string reason;
  const int count = cuda_device_count(&reason);
  if (count == 0) return reason;
  return index < count ? "" : fmt::format("this machine has {}, numbered from 0", count);
}

Cores available_cores() {
  const auto online = static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
  const int quota = cpu_quota();
  return {usable_cores(), quota > 0 ? std::min(online, quota) : online};
}

int Cores::share(int ranks) const { return std::max(1, usable / (usable == online ? ranks : 1)); }

DType precision_of(const std::string& name) {
  return name == "bf16" ? DType::bf16 : name == "fp16" ? DType::f16 : DType::f32;
}

const char* name_of_precision(DType precision) {
  return precision == DType::bf16 ? "bf16" : precision == DType::f16 ? "fp16" : "fp32";
}

}  // namespace dtrain::cli
