// What programs take from their environment.
#pragma once

#include <string>
#include <vector>

#include "libdtrain/core/context.h"
#include "libdtrain/distributed/group.h"

namespace dtrain::cli {

// A variable that programs read beside those that set flags, for their manual pages.
struct Variable {
  std::string name, meaning;
};
std::vector<Variable> documented_variables();

// Looks variables up in the environment of this process.
Environment environment();

// With what its variables ask for: DTRAIN_SYNC=1 sets sync_each_launch, DTRAIN_POOL=0 clears pool.
CudaOptions with_environment(CudaOptions options = {});
// DTRAIN_CPU_ISA=NAME sets isa; throws Error where NAME is no instruction set of name_of, or one that this processor
// lacks.
CpuOptions with_environment(CpuOptions options);

// Where indices and unpacked copies of read-only data are kept: $XDG_CACHE_HOME/dtrain, else ~/.cache/dtrain; empty
// where neither is known.
std::string cache_directory();

// The path that this program was started by, so that it keeps its name in `ps`, `top` and core files where it is
// started once more; empty where that would not start the same program.
std::string own_path();

enum class Waiting {
  sleep,       // at once
  spin_first,  // for some microseconds: for work of many short parts, such as inference of single images
};

// Makes OpenMP's threads sleep instead of spin while they wait for one another, unless OMP_WAIT_POLICY or
// GOMP_SPINCOUNT is set. OpenMP reads them before main begins, so this starts the program anew, in the same process:
// call it first. Its name stays what it was. On a busy machine spinning made training five times slower, because the
// thread that is waited for did not get the processor.
void let_waiting_threads_sleep(char** argv, Waiting waiting = Waiting::sleep);

}  // namespace dtrain::cli
