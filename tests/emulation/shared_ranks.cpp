#include "tests/emulation/shared_ranks.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tests/emulation/block.h"

namespace emulation {
namespace {

// Each rank locks its own byte; the kernel releases it when the process ends.
struct flock byte_of(int rank) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = rank;
  lock.l_len = 1;
  return lock;
}

}  // namespace

SharedRanks::SharedRanks(const std::string& name, int ranks, int rank) : name_(name), ranks_(ranks), rank_(rank) {
  const size_t bytes = static_cast<size_t>(ranks) * sizeof(SharedRank);
  file_ = shm_open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  struct flock mine = byte_of(rank);
  if (file_ < 0 || ftruncate(file_, static_cast<off_t>(bytes)) != 0 || fcntl(file_, F_OFD_SETLK, &mine) != 0)
    fail("%s for rank %d: %s", name.c_str(), rank, std::strerror(errno));
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  if (memory == MAP_FAILED) fail("%s: %s", name.c_str(), std::strerror(errno));
  shares_ = static_cast<SharedRank*>(memory);
  shares_[rank].state = 1;
}

SharedRanks::~SharedRanks() {
  shares_[rank_].state = 2;
  munmap(shares_, static_cast<size_t>(ranks_) * sizeof(SharedRank));
  close(file_);
  if (named_) shm_unlink(name_.c_str());
}

bool SharedRanks::complete() {
  for (int rank = 0; rank < ranks_; ++rank)
    if (shares_[rank].state == 0) return false;
  if (named_) shm_unlink(name_.c_str());
  named_ = false;
  return true;
}

bool SharedRanks::is_dead(int rank) const {
  if (rank == rank_ || shares_[rank].state != 1) return false;
  struct flock lock = byte_of(rank);
  return fcntl(file_, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_UNLCK;
}

}  // namespace emulation
