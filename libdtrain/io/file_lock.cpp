#include "libdtrain/io/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <string_view>
#include <thread>

#include "dtrain/core/error.h"
#include "dtrain/io/file_system.h"

namespace dtrain {
namespace {

constexpr size_t kMostBytes = 31;  // of a lock file

std::string content(int fd) {
  std::array<char, kMostBytes + 1> text{};
  const ssize_t got = ::pread(fd, text.data(), text.size(), 0);
  return {text.data(), got > 0 ? static_cast<size_t>(got) : 0};
}

// Whether the content is that of a lock file, which may be zeros after a power failure.
bool is_of_a_lock(int fd) {
  using namespace std::string_view_literals;
  struct stat info;
  const std::string text = content(fd);
  return ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && text.size() <= kMostBytes &&
         text.find_first_not_of("0123456789\n\0"sv) == std::string::npos;
}

// Retries while wait() is true.
int lock(int fd, const std::function<bool()>& wait) {
  constexpr std::chrono::milliseconds kBetween{50};
  while (::flock(fd, LOCK_EX | LOCK_NB) < 0) {
    const int cause = errno;
    if (cause != EINTR && (cause != EWOULDBLOCK || !wait())) {
      errno = cause;
      return -1;
    }
    std::this_thread::sleep_for(kBetween);
  }
  return 0;
}

}  // namespace

FileLock::FileLock(const std::string& path, IfHeld if_held, const std::function<bool()>& stop)
    : fd_(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666)) {
  DT_CHECK(fd_ >= 0 || errno != ELOOP, path, ": is a link; a lock must be a file: move it away");
  require_success(fd_, "open", path);
  std::string problem;
  Fault fault = Fault::resource;
  const bool waits = if_held == IfHeld::wait;
  if (!is_of_a_lock(fd_)) {
    problem = concat(path, ": is not a lock file, which holds a process id and nothing else; move it away");
    fault = Fault::config;
  } else if (lock(fd_, [&] { return waits && !(stop && stop()); }) < 0) {
    if (errno == EWOULDBLOCK) {
      const std::string text = content(fd_), holder = text.substr(0, text.find('\n'));
      problem = concat(path, ": locked by process ", holder.empty() ? "unknown" : holder,
                       waits ? ", and a stop was requested before it was free"
                             : ", which writes to this directory; wait for it, stop it, or choose another directory");
      fault = waits ? Fault::resource : Fault::config;
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
