// What programs take from their environment.
#pragma once

#include <string>

namespace dtrain::cli {

// Where indices and unpacked copies of read-only data are kept: $XDG_CACHE_HOME/dtrain, else ~/.cache/dtrain; empty
// where neither is known.
std::string cache_directory();

// Makes OpenMP's threads sleep instead of spin while they wait for one another, unless OMP_WAIT_POLICY or
// GOMP_SPINCOUNT is set. OpenMP reads them before main begins, so this starts the program anew, in the same process:
// call it first. On a busy machine spinning made training five times slower, because the thread that is waited for did
// not get the processor.
void let_waiting_threads_sleep(char** argv);

}  // namespace dtrain::cli
