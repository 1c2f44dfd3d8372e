// The memory that the ranks of a host share, which Open MPI (4.1) makes as a file of each rank, by default in /dev/shm.
// The launcher removes such files at the end of a job: where it is killed they would stay until the machine is
// restarted.
#pragma once

#include <string>

namespace dtrain::mpi {

// Removes the name of this rank's file and returns it, or nothing where there is no such file. The memory lives on in
// the processes that have it, and ends with them. To be called once all ranks of the host have opened the file.
std::string unlink_memory(int local_rank);
// Before the end of MPI, which complains where there is nothing to remove by that name.
void name_again(const std::string& path);

}  // namespace dtrain::mpi
