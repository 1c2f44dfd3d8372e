// Creates contexts from flags.
#include "apps/cli/machine.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include <unistd.h>

#include <fmt/format.h>

#include "apps/cli/environment.h"
#include "apps/cli/rank_table.h"
#include "dtrain/core/gpu_info.h"
#include "libdtrain/core/cores.h"

namespace dtrain::cli {

std::unique_ptr<Context> Machine::make_context() const {
  // OpenMP ignores CPU quotas.
  if (!gpu)
    return make_cpu_context(
        with_environment(CpuOptions{.threads = threads_are_chosen(threads) ? threads : usable_cores()}));
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
    std::error_code ignored;  // the context reports an unwritable plan file
    std::filesystem::create_directories(cache, ignored);
    options.plan_file = cache + "/convolution_plans";
  }
  return make_cuda_context(with_environment(options));
}

std::string describe(const Context& context) {
  return fmt::format("{} {}, {}", context.threads(), context.threads() == 1 ? "thread" : "threads",
                     name_of(context.isa()));
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
  return {usable_cores(), quota > 0 ? std::min(online, quota) : online, quota};
}

int Cores::share(int ranks, int sharing) const {
  const int own = usable / sharing;
  return std::max(1, quota > 0 ? std::min(own, quota / ranks) : own);
}

std::vector<std::vector<int>> cores_for_ranks(int ranks, bool gpu, int64_t threads) {
  for (const char* variable : {"OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY"})
    if (environment()(variable) != nullptr) return {};
  std::vector<int> nodes;
  for (int rank = 0; rank < ranks; ++rank)
    nodes.push_back(gpu && rank < cuda_device_count() ? numa_node_of_device(gpu_info(rank).address) : -1);
  std::vector<std::vector<int>> cores = split_cores(cores_of(0), nodes);
  const char* said = environment()("OMP_NUM_THREADS");
  const int64_t asked = threads > 0 || said == nullptr ? threads : std::strtol(said, nullptr, 10);
  if (std::ranges::any_of(cores, [&](const auto& part) { return static_cast<int64_t>(part.size()) < asked; }))
    return {};
  return cores;
}

DType precision_of(const std::string& name) {
  return name == "bf16" ? DType::bf16 : name == "fp16" ? DType::f16 : DType::f32;
}

const char* name_of_precision(DType precision) {
  return precision == DType::bf16 ? "bf16" : precision == DType::f16 ? "fp16" : "fp32";
}

}  // namespace dtrain::cli
