#include "libdtrain/io/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "libdtrain/core/error.h"
#include "libdtrain/io/file_system.h"

namespace dtrain {
namespace {

std::string first_word(int fd) {
  std::array<char, 32> text{};
  const ssize_t got = ::pread(fd, text.data(), text.size() - 1, 0);
  const std::string word(text.data(), got > 0 ? static_cast<size_t>(got) : 0);
  return word.substr(0, word.find('\n'));
}

int lock(int fd, FileLock::IfHeld if_held) {
  const int how = if_held == FileLock::IfHeld::wait ? LOCK_EX : LOCK_EX | LOCK_NB;
  int status;
  do status = ::flock(fd, how);
  while (status < 0 && errno == EINTR);
  return status;
}

}  // namespace

FileLock::FileLock(const std::string& path, IfHeld if_held)
    : fd_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
  require_success(fd_, "open", path);
  std::string problem;
  Fault fault = Fault::resource;
  if (lock(fd_, if_held) < 0) {
    if (errno == EWOULDBLOCK) {
      const std::string holder = first_word(fd_);
      problem = concat(path, ": locked by process ", holder.empty() ? "unknown" : holder,
                       ", which writes to this directory; wait for it, stop it, or choose another directory");
      fault = Fault::config;
    } else {
      problem = describe_errno("flock", path);
    }
  } else {
    const std::string pid = std::to_string(::getpid()) + "\n";
    if (::pwrite(fd_, pid.data(), pid.size(), 0) < 0 || ::ftruncate(fd_, static_cast<off_t>(pid.size())) < 0)
      problem = describe_errno("write", path);
  }
  if (problem.empty()) return;
  ::close(fd_);
  throw Error(fault, problem);
}

FileLock::~FileLock() { ::close(fd_); }

}  // namespace dtrain
