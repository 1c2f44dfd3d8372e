// Finds the segment among the files mapped by this process.
#include "libdtrain/distributed/mpi_memory.h"

#include <fstream>

#include <fcntl.h>
#include <unistd.h>

namespace dtrain::mpi {

// The file name ends in host, user, job and local rank.
std::string unlink_memory(int local_rank) {
  const std::string end = "." + std::to_string(local_rank);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const size_t path = line.find('/');
    if (path == std::string::npos || !line.ends_with(end)) continue;
    const std::string name = line.substr(path);
    if (name.find("/vader_segment.") == std::string::npos && name.find("/sm_segment.") == std::string::npos) continue;
    return unlink(name.c_str()) == 0 ? name : "";
  }
  return "";
}

void name_again(const std::string& path) {
  if (path.empty()) return;
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file >= 0) close(file);
}

}  // namespace dtrain::mpi
