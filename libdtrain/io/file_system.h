// The system calls that durable writing is made of: the one seam through which files, checkpoints and locks reach the
// disk, so that tests can put a failing, full or forgetful disk in its place.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "libdtrain/core/error.h"

namespace dtrain {

// Each function is its system call: -1 and errno on failure, short writes allowed.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  virtual int create(const std::string& path);  // for writing; fails where it exists
  virtual ssize_t write(int fd, const void* data, size_t size);
  virtual int sync(int fd);
  virtual int close(int fd);
  virtual int rename(const std::string& from, const std::string& to);
  virtual int unlink(const std::string& path);
  virtual int symlink(const std::string& target, const std::string& path);
  virtual int make_directory(const std::string& path);
  virtual int remove_directory(const std::string& path);  // an empty one
  virtual int sync_directory(const std::string& path);
  virtual int free_bytes(const std::string& path, uint64_t& bytes);  // that this user may still write
};

// The system's own.
FileSystem& system_files();

// Fault::resource where errno says that this process or the system has no descriptor, memory or room left, which is no
// fault of the file; else `otherwise`.
Fault fault_of_errno(int cause, Fault otherwise);

// "open /a/b: No space left on device", from errno.
std::string describe_errno(const char* call, const std::string& path);

// Throws Error(Fault::resource) where `status`, a system call's result, is negative.
void require_success(int64_t status, const char* call, const std::string& path);

}  // namespace dtrain
