// Messages over MPI.
#pragma once

#include <memory>

#include <mpi.h>

#include "libdtrain/distributed/transport.h"

namespace dtrain::mpi {

// Throws Error(Fault::communication) with MPI's text where `code`, what an MPI call returned, is not success.
void check(int code, const char* call);

// Throws Error(Fault::config) where MPI has been started in this process before.
void require_first_start();
// Starts MPI on the calling thread, which is then the one that calls all of the transport. Throws
// Error(Fault::communication) where that fails. Without finish() MPI is left as it is.
std::unique_ptr<host::Transport> start_mpi();

}  // namespace dtrain::mpi
