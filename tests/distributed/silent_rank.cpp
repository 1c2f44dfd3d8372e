// Preloaded library: ranks that hang inside MPI. Rank 1 hangs in its set-up, where the others wait for it; with
// DTRAIN_SILENT_FILE all hang once that file exists.
#include <mpi.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

extern "C" int MPI_Comm_dup(MPI_Comm from, MPI_Comm* to) {
  static int calls = 0;  // single-threaded
  const char* const rank = std::getenv("OMPI_COMM_WORLD_RANK");
  const bool in_set_up = std::getenv("DTRAIN_SILENT_FILE") == nullptr;
  while (in_set_up && ++calls > 1 && rank != nullptr && std::strcmp(rank, "1") == 0) pause();
  return PMPI_Comm_dup(from, to);
}

extern "C" int MPI_Test(MPI_Request* request, int* done, MPI_Status* status) {
  const char* const file = std::getenv("DTRAIN_SILENT_FILE");
  while (file != nullptr && access(file, F_OK) == 0) pause();
  return PMPI_Test(request, done, status);
}
