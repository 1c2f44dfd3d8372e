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
       "where rank 0 of a job listens, and which of how many ranks this process is: the ranks meet over TCP in place "
       "of MPI"},
      {"MASTER_ADDR, MASTER_PORT, RANK, WORLD_SIZE, LOCAL_RANK",
       "the same as torchrun and Kubeflow's PyTorchJob say it, where no other launcher has started the process"},
      {"DTRAIN_JOB_ID, DTRAIN_JOB_SECRET, DTRAIN_JOB_SECRET_FILE, DTRAIN_BIND_ADDR, DTRAIN_TRUST_NETWORK",
       "which job such ranks belong to, the secret that protects their connections, or a file that holds it, the "
       "address that they listen on, and 1 for a network that needs no secret"},
      {"DTRAIN_SYNC", "1 waits for each piece of work on a GPU, so that errors name the operation"},
      {"DTRAIN_POOL", "0 takes each tensor's memory from the GPU's driver instead of a pool"},
      {"DTRAIN_CPU_ISA", concat("the highest instruction set that computing uses, of ", cpu_isa_names(),
                                "; by default the processor's best")},
      {"OMP_NUM_THREADS, OMP_WAIT_POLICY, OMP_PROC_BIND, OMP_PLACES",
       "threads for computing, whether they spin while they wait, and the cores that they run on"},
      {"CUDA_VISIBLE_DEVICES", "the GPUs that the program sees"},
      {"XDG_CACHE_HOME",
       "the folder in which dtrain/ keeps indices of data sets and what was measured of a GPU; "
       "$HOME/.cache by default"},
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
  // Another program may be there by now, or the system may run this one by means of another, such as an emulator or the
  // dynamic linker, which would not be started again in the same way. Without /proc nobody knows.
  const std::filesystem::path self = "/proc/self/exe";
  std::error_code ignored;
  if (std::filesystem::exists(self, ignored) && !std::filesystem::equivalent(path, self, ignored)) return "";
  return path;
}

void let_waiting_threads_sleep(char** argv, Waiting waiting) {
  // Measured on two Zen 4 cores with ResNet-50 in int8, one image at a time: 15.0 ms asleep, 14.2 with 300 spins, 11.8
  // with these, 11.4 with 10000 of them; two programs at once 21.9, 22.7 and 24.6, and 28.0 with 2000.
  constexpr const char* kShortSpins = "1000";
  if (std::getenv("OMP_WAIT_POLICY") != nullptr || std::getenv("GOMP_SPINCOUNT") != nullptr) return;
  const std::string path = own_path();
  const bool set = waiting == Waiting::sleep ? setenv("OMP_WAIT_POLICY", "passive", 0) == 0
                                             : setenv("GOMP_SPINCOUNT", kShortSpins, 0) == 0;
  if (!path.empty() && set) execv(path.c_str(), argv);
  // Where that fails, the program runs on as it is: slower perhaps, not wrong.
}

}  // namespace dtrain::cli
