// Open MPI, loaded with dlopen at first use. Declares the common binary interface of Open MPI 4 and 5 (libmpi.so.40),
// so that a build needs no MPI and the same program runs with either or without.
#pragma once

#include <cstddef>

#include "libdtrain/core/shared_library.h"

namespace dtrain::mpi {

// As in mpi.h, without the prefix MPI_; tests/distributed/open_mpi_interface.cpp compares them.
using Comm = struct CommObject*;
using Datatype = struct DatatypeObject*;
using Errhandler = struct ErrhandlerObject*;
using Info = struct InfoObject*;
using Message = struct MessageObject*;
using Op = struct OpObject*;
using Request = struct RequestObject*;
struct Status {
  int source, tag, error, cancelled;
  size_t count;
};
constexpr int kSuccess = 0, kAnySource = -1, kThreadFunneled = 1, kCommTypeShared = 0;
constexpr int kMaxErrorString = 256, kMaxLibraryVersionString = 256;

struct OpenMpi {
  // Global, because Open MPI's plugins and preloaded profilers use its symbols.
  SharedLibrary library{"Open MPI 4 or 5", "libmpi.so.40", SharedLibrary::Scope::global};

  Comm comm_world = library.symbol("ompi_mpi_comm_world");
  Datatype byte = library.symbol("ompi_mpi_byte"), integer = library.symbol("ompi_mpi_int");
  Errhandler errors_return = library.symbol("ompi_mpi_errors_return");
  Info info_null = library.symbol("ompi_mpi_info_null");
  Op min = library.symbol("ompi_mpi_op_min");
  Request request_null = library.symbol("ompi_request_null");

  int (*init_thread)(int*, char***, int, int*) = library.symbol("MPI_Init_thread");
  int (*initialized)(int*) = library.symbol("MPI_Initialized");
  int (*finalize)() = library.symbol("MPI_Finalize");
  int (*get_library_version)(char*, int*) = library.symbol("MPI_Get_library_version");
  int (*error_string)(int, char*, int*) = library.symbol("MPI_Error_string");
  int (*comm_set_errhandler)(Comm, Errhandler) = library.symbol("MPI_Comm_set_errhandler");
  int (*comm_rank)(Comm, int*) = library.symbol("MPI_Comm_rank");
  int (*comm_size)(Comm, int*) = library.symbol("MPI_Comm_size");
  int (*comm_dup)(Comm, Comm*) = library.symbol("MPI_Comm_dup");
  int (*comm_free)(Comm*) = library.symbol("MPI_Comm_free");
  int (*comm_split_type)(Comm, int, int, Info, Comm*) = library.symbol("MPI_Comm_split_type");
  int (*allreduce)(const void*, void*, int, Datatype, Op, Comm) = library.symbol("MPI_Allreduce");
  int (*allgather)(const void*, int, Datatype, void*, int, Datatype, Comm) = library.symbol("MPI_Allgather");
  int (*isend)(const void*, int, Datatype, int, int, Comm, Request*) = library.symbol("MPI_Isend");
  int (*irecv)(void*, int, Datatype, int, int, Comm, Request*) = library.symbol("MPI_Irecv");
  int (*test)(Request*, int*, Status*) = library.symbol("MPI_Test");
  int (*improbe)(int, int, Comm, int*, Message*, Status*) = library.symbol("MPI_Improbe");
  int (*mrecv)(void*, int, Datatype, Message*, Status*) = library.symbol("MPI_Mrecv");
  int (*get_count)(const Status*, Datatype, int*) = library.symbol("MPI_Get_count");
};

// Throws Error(Fault::resource) if it is not installed.
const OpenMpi& open_mpi();

// Makes calls return an error when a connection is lost; to be called before MPI_Init. Open MPI 5 aborts the process
// unless its fault tolerance (ULFM) is enabled, which has only an environment variable. It excludes UCX and libfabric,
// and so stays disabled where RDMA devices exist or another PML than ob1 is selected.
void return_connection_errors();

}  // namespace dtrain::mpi
