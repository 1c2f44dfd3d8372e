// Flags to a device, with checks against the machine.
#include "apps/cli/options/machine.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include <fmt/format.h>

#include "apps/cli/child.h"
#include "apps/cli/environment.h"
#include "apps/cli/local_ranks.h"
#include "dtrain/core/error.h"

namespace dtrain::cli {
namespace {

// The GPU of this rank, from --gpu_indices if given.
int gpu_index(const std::string& list, const Ranks& ranks) {
  if (list.empty()) return gpu_of_rank(ranks.local_rank);
  std::vector<int> indices;
  for (const char *at = list.data(), *end = at + list.size();; ++at) {
    int& index = indices.emplace_back(-1);
    const auto [stop, error] = std::from_chars(at, end, index);
    DT_CHECK(error == std::errc() && index >= 0 && (stop == end || *stop == ','), "--gpu_indices=", list,
             ": expected numbers of GPUs with commas between them");
    if (stop == end) break;
    at = stop;
  }
  DT_CHECK(static_cast<int>(indices.size()) >= ranks.local_size, "--gpu_indices=", list, ": ", ranks.local_size,
           " ranks run on this host, one GPU is needed for each");
  return indices[static_cast<size_t>(ranks.local_rank)];
}

// What keeps this process from using more cores. Open MPI 4 tells processes whether it bound them, and the policy of
// --bind-to; other launchers tell nothing, but single processes are rarely bound by one.
std::string limit_of(const Cores& cores, const Ranks& ranks) {
  if (cores.usable == cores.online) return ", all of the machine";
  const auto variable = [variables = environment()](const char* name) {
    const char* const value = variables(name);
    return std::string_view(value == nullptr ? "" : value);
  };
  const bool bound = variable("OMPI_MCA_orte_bound_at_launch") == "1";
  const bool unbound = variable("OMPI_MCA_hwloc_base_binding_policy").starts_with("none");
  if (bound || (!unbound && ranks.size > 1)) return ": mpirun binds ranks to cores; pass --bind-to none to disable";
  return ": a container, taskset or the batch system allows no more";
}

// Ranks of a host share its cores, with or without binding.
int threads_of(int asked, bool chosen, const Ranks& ranks, std::vector<std::string>& notices) {
  const Cores cores = available_cores();
  const int fair = std::max(1, cores.online / ranks.local_size);
  const bool by_launcher = ranks.size > 1 && local_rank().count == 0;
  const bool bound = by_launcher && (ranks.sharing == 1 || ranks.sharing < ranks.local_size);
  if (asked > cores.usable || (bound && cores.usable < fair))
    notices.push_back(concat("this process may use ", cores.usable, " of ", cores.online, " cores",
                             asked > cores.usable ? concat(", ", asked, " threads were asked for") : "",
                             limit_of(cores, ranks)));
  return chosen || ranks.size == 1 ? asked : cores.share(ranks.local_size, ranks.sharing);
}

// Unbound ranks of a host divide its cores among themselves, like the ranks of --num_gpus.
void bind_to_share(const Ranks& ranks, bool gpu, int64_t threads) {
  const bool unbound = local_rank().count == 0 && ranks.local_size > 1 && ranks.sharing == ranks.local_size;
  // If each rank sees only its own GPU, the GPUs of the others are unknown.
  if (!unbound || (gpu && cuda_device_count() < ranks.local_size)) return;
  const std::vector<std::vector<int>> parts = cores_for_ranks(ranks.local_size, gpu, threads);
  if (parts.empty()) return;
  const cpu_set_t own = set_of(parts[static_cast<size_t>(ranks.local_rank)]);
  sched_setaffinity(0, sizeof own, &own);  // on failure the rank stays unbound
}

}  // namespace

void MachineFlags::declare(FlagSet& flags) {
  flags.group("Device, precision, threads");
  flags.add_choice("device", device, {"cpu", "gpu"}, "if not given: a GPU if there is one, else the CPU with a notice");
  flags.add("gpu_indices", gpu_indices, "GPU indices for the ranks of a host, in order; by default 0, 1, ...")
      .may_differ_per_rank();
  flags
      .add("gpu_memory_frac_for_testing", gpu_memory_frac_for_testing,
           "fraction of the GPU's memory that may be used; 0: all free memory", kShare)
      .may_differ_per_rank();
  flags.add_choice("precision", precision, {"fp32", "bf16", "fp16"},
                   "data type of activations and gradients; fp16 needs a GPU");
  flags.add("use_fp16", use_fp16, "the same as --precision=fp16");
  flags.add("fp16_loss_scale", fp16_loss_scale, "static loss scale of fp16; 128 by default", {1, kNotNegative.high});
  flags.add("fp16_enable_auto_loss_scale", fp16_enable_auto_loss_scale,
            "dynamic loss scaling: on a non-finite gradient, halve the loss scale and skip the update; double it after "
            "fp16_inc_loss_scale_every_n finite steps");
  flags.add("fp16_inc_loss_scale_every_n", fp16_inc_loss_scale_every_n,
            "finite steps before dynamic loss scaling doubles the loss scale", kPositiveCount);
  flags.add("tf32", tf32,
            "fp32 on a GPU: allow TensorFloat-32 (10 bits of mantissa) in convolutions and matrix multiplications");
  flags.add("deterministic", deterministic,
            "use only deterministic algorithms on a GPU; a CPU is always deterministic at a fixed number of threads");
  flags.add("cuda_graph", cuda_graph,
            "on a GPU: capture a step as a CUDA graph after the first steps, and launch the graph from then on; the "
            "results are the same");
  flags
      .add("num_intra_threads", num_intra_threads, "compute threads; not given or 0: OMP_NUM_THREADS or one per core",
           kThreads)
      .may_differ_per_rank();
}

void MachineFlags::check(const FlagSet& flags) const {
  refuse({{use_fp16 && flags.given("precision") && precision != "fp16",
           "--use_fp16 and --precision contradict each other"}});
}

Machine MachineFlags::resolve(const FlagSet& flags, const Ranks& ranks, std::vector<std::string>& notices) const {
  const std::string name = wants_fp16() ? "fp16" : precision;
  Machine machine;
  machine.index = gpu_index(gpu_indices, ranks);
  if (device == "gpu") {
    const std::string reason = why_no_gpu(machine.index);
    DT_CHECK(reason.empty() || !flags.given("device"), "--device=gpu: no GPU ", machine.index, ": ", reason,
             "; use --device=cpu");
    machine.gpu = reason.empty();
    if (!machine.gpu) notices.push_back("no --device given and no GPU: " + reason + ": running on the CPU");
  }
  machine.precision = precision_of(name);
  machine.tf32 = tf32;
  machine.deterministic = deterministic;
  machine.memory_share = gpu_memory_frac_for_testing;
  const int64_t threads = num_intra_threads.value_or(0);
  machine.threads = threads_of(static_cast<int>(threads), asks_for_threads(), ranks, notices);
  bind_to_share(ranks, machine.gpu, threads);
  DT_CHECK(machine.gpu || name != "fp16", "--precision=fp16: not supported on a CPU; use --precision=bf16 or fp32");
  DT_CHECK(!tf32 || (machine.gpu && name == "fp32"), "--tf32 needs --precision=fp32 on a GPU");
  return machine;
}

bool MachineFlags::asks_for_threads() const { return threads_are_chosen(num_intra_threads.value_or(0)); }

void MachineFlags::apply(TrainerOptions& trainer) const {
  trainer.cuda_graph = cuda_graph;
  if (!wants_fp16()) return;
  constexpr double kLossScale = 128;  // tf_cnn_benchmarks' value for all its models
  trainer.loss_scale = static_cast<float>(fp16_loss_scale.value_or(kLossScale));
  if (fp16_enable_auto_loss_scale) trainer.double_loss_scale_after = static_cast<int>(fp16_inc_loss_scale_every_n);
}

}  // namespace dtrain::cli
