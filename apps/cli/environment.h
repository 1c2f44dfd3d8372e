// Environment variables of programs.
#pragma once

#include <string>
#include <vector>

#include "dtrain/core/context.h"
#include "dtrain/distributed/group.h"

namespace dtrain::cli {

// An environment variable, besides those that set flags; for manual pages.
struct Variable {
  std::string name, meaning;
};
std::vector<Variable> documented_variables();

// Looks variables up in the environment of this process.
Environment environment();

// Context options from the environment: DTRAIN_SYNC=1 sets sync_each_launch, DTRAIN_POOL=0 clears pool.
CudaOptions with_environment(CudaOptions options = {});
// DTRAIN_CPU_ISA=NAME sets isa; throws Error if NAME is not an instruction set of name_of, or the processor lacks it.
CpuOptions with_environment(CpuOptions options);

// Cache folder for indices and unpacked copies of read-only data: $XDG_CACHE_HOME/dtrain, else ~/.cache/dtrain; empty
// if neither is known.
std::string cache_directory();

// Path that this program was started with, for a re-exec that keeps its name in `ps`, `top` and core files; empty if it
// would not start the same program.
std::string own_path();

enum class Waiting {
  sleep,       // at once
  spin_first,  // for some microseconds: for many short parallel regions, such as inference at batch 1
};

// Makes waiting OpenMP threads sleep instead of spin, unless OMP_WAIT_POLICY or GOMP_SPINCOUNT is set. OpenMP reads
// them before main(), so this re-executes the program in the same process under the same name: call it first. On a busy
// machine, spinning made training five times slower, because it took the core from the thread that was waited for.
void let_waiting_threads_sleep(char** argv, Waiting waiting = Waiting::sleep);

}  // namespace dtrain::cli
