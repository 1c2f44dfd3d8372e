// Environment variables.
#include "apps/cli/environment.h"

#include <cstdlib>
#include <filesystem>
#include <string_view>

#include <sys/auxv.h>
#include <unistd.h>

namespace dtrain::cli {

std::vector<Variable> documented_variables() {
  return {
      {"DTRAIN_MASTER_ADDR, DTRAIN_MASTER_PORT, DTRAIN_RANK, DTRAIN_SIZE",
       "address and port of rank 0, rank of this process and number of ranks: ranks connect over TCP instead of MPI"},
      {"MASTER_ADDR, MASTER_PORT, RANK, WORLD_SIZE, LOCAL_RANK",
       "the same as set by torchrun and Kubeflow's PyTorchJob, if no other launcher started the process"},
      {"DTRAIN_JOB_ID, DTRAIN_JOB_SECRET, DTRAIN_JOB_SECRET_FILE, DTRAIN_BIND_ADDR, DTRAIN_TRUST_NETWORK",
       "which job such ranks belong to, the secret that protects their connections, or a file that holds it, the "
       "address that they listen on, and 1 for a network that needs no secret"},
      {"DTRAIN_SYNC", "1 waits for each piece of work on a GPU, so that errors name the operation"},
      {"DTRAIN_POOL", "0 takes each tensor's memory from the GPU's driver instead of a pool"},
      {"DTRAIN_CPU_ISA", concat("the highest instruction set that computing uses, of ", cpu_isa_names(),
                                "; by default the processor's best")},
      {"DTRAIN_CPU_CONV",
       "the algorithm of convolutions on the processor, e.g. winograd, for tests and comparisons; others compute what "
       "it "
       "does not support: see dtrain-info --conv, and --profile for what ran"},
      {"AWS_*, DTRAIN_REMOTE_TIMEOUT",
       "credentials, region and endpoint of s3:// addresses, and the seconds for which failing requests are repeated: "
       "see "
       "docs/object-storage.md"},
      {"OMP_NUM_THREADS, OMP_WAIT_POLICY, OMP_PROC_BIND, OMP_PLACES",
       "number of compute threads, whether waiting threads spin, and the cores of the threads"},
      {"CUDA_VISIBLE_DEVICES", "GPUs that are visible to the program"},
      {"XDG_CACHE_HOME",
       "parent of the cache folder dtrain/, with indices of data sets and autotuning results of GPUs; default: "
       "$HOME/.cache"},
  };
}

Environment environment() {
  return [](const char* name) { return std::getenv(name); };
}

CudaOptions with_environment(CudaOptions options) {
  const auto says = [](const char* name, std::string_view value) {
    const char* text = std::getenv(name);
    return text != nullptr && text == value;
  };
  if (says("DTRAIN_SYNC", "1")) options.sync_each_launch = true;
  if (says("DTRAIN_POOL", "0")) options.pool = false;
  return options;
}

CpuOptions with_environment(CpuOptions options) {
  if (const char* conv = std::getenv("DTRAIN_CPU_CONV")) options.conv_algorithm = conv;
  const char* name = std::getenv("DTRAIN_CPU_ISA");
  if (name == nullptr || *name == '\0') return options;
  options.isa = cpu_isa_of(name);
  if (!options.isa) throw Error(concat("DTRAIN_CPU_ISA is ", name, ": expected one of ", cpu_isa_names()));
  if (*options.isa > best_cpu_isa())
    throw Error(concat("DTRAIN_CPU_ISA is ", name, ": this processor has ", name_of(best_cpu_isa()), " at most"));
  return options;
}

std::string cache_directory() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache != '\0') return std::string(cache) + "/dtrain";
  const char* home = std::getenv("HOME");
  return home != nullptr && *home != '\0' ? std::string(home) + "/.cache/dtrain" : "";
}

std::string own_path() {
  const auto* path = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
  if (path == nullptr) return "";
  // The path may hold another program by now, or the system may run this one through an emulator or the dynamic linker,
  // which exec would not restart in the same way. Cannot be determined without /proc.
  const std::filesystem::path self = "/proc/self/exe";
  std::error_code ignored;
  if (std::filesystem::exists(self, ignored) && !std::filesystem::equivalent(path, self, ignored)) return "";
  return path;
}

void let_waiting_threads_sleep(char** argv, Waiting waiting) {
  // Measured on two Zen 4 cores with ResNet-50 in int8 at batch 1: 15.0 ms without spinning, 14.2 with 300 spins, 11.8
  // with these, 11.4 with 10000; two concurrent programs: 21.9, 22.7 and 24.6, and 28.0 with 2000.
  constexpr const char* kShortSpins = "1000";
  if (std::getenv("OMP_WAIT_POLICY") != nullptr || std::getenv("GOMP_SPINCOUNT") != nullptr) return;
  const std::string path = own_path();
  const bool set = waiting == Waiting::sleep ? setenv("OMP_WAIT_POLICY", "passive", 0) == 0
                                             : setenv("GOMP_SPINCOUNT", kShortSpins, 0) == 0;
  if (!path.empty() && set) execv(path.c_str(), argv);
  // On failure the program continues unchanged: perhaps slower, with the same results.
}

}  // namespace dtrain::cli
