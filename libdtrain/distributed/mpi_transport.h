// Transport over MPI.
#pragma once

#include <memory>

#include "libdtrain/distributed/transport.h"

namespace dtrain::mpi {

// Throws Error(Fault::communication) with MPI's error text unless `code` is success.
void check(int code, const char* call);

// Throws Error(Fault::config) if MPI was started before in this process.
void require_first_start();
// Starts MPI on the calling thread, which must make all calls of the transport. Throws Error(Fault::communication) on
// failure. Without finish() MPI is not finalised.
std::unique_ptr<host::Transport> start_mpi();

}  // namespace dtrain::mpi
