// OpenFolder: whole files of a folder, opened by relative paths. Small images are read in a few microseconds, of which
// resolving a long path and fstat would be a considerable part.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <string>

#include "dtrain/core/error.h"
#include "dtrain/io/file_system.h"

namespace dtrain::data {

// Thread-safe. Throws Error(Fault::data) naming the path or name, Error(Fault::resource) for a lack of descriptors.
class OpenFolder {
 public:
  explicit OpenFolder(const std::string& path) : fd_(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    if (fd_ < 0) throw Error(fault_of_errno(errno, Fault::data), describe_errno("open", path));
  }
  ~OpenFolder() { ::close(fd_); }
  OpenFolder(const OpenFolder&) = delete;
  OpenFolder& operator=(const OpenFolder&) = delete;

  // Reads a file of `bytes` bytes into `to`, which has room for one more. Returns false if it has another size.
  bool read(const char* name, std::byte* to, size_t bytes) const {
    const int fd = ::openat(fd_, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // does not wait for the writer of a FIFO
    size_t done = 0;
    ssize_t got = fd;
    while (got >= 0 && done < bytes) {
      got = ::read(fd, to + done, bytes + 1 - done);
      if (got == 0) break;
      if (got < 0 && errno == EINTR) got = 0;
      if (got > 0) done += static_cast<size_t>(got);
    }
    const int cause = errno;
    if (fd >= 0) ::close(fd);
    errno = cause;
    if (got < 0) throw Error(fault_of_errno(cause, Fault::data), describe_errno(fd < 0 ? "open" : "read", name));
    return done == bytes;
  }

 private:
  int fd_;
};

}  // namespace dtrain::data
