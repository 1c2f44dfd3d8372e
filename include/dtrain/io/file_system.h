// FileSystem: system calls of durable output. Files, checkpoints and locks use this interface, so that tests can inject
// failing, full or lossy disks.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "dtrain/core/error.h"

namespace dtrain {

// Semantics of the system calls: -1 and errno on failure, short writes allowed.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  virtual int create(const std::string& path);  // for writing; fails if it exists
  virtual ssize_t write(int fd, const void* data, size_t size);
  virtual int sync(int fd);
  virtual int close(int fd);
  virtual int rename(const std::string& from, const std::string& to);
  virtual int unlink(const std::string& path);
  virtual int symlink(const std::string& target, const std::string& path);
  virtual int make_directory(const std::string& path);
  virtual int remove_directory(const std::string& path);  // must be empty
  virtual int sync_directory(const std::string& path);
  virtual int free_bytes(const std::string& path, uint64_t& bytes);  // available to this user
};

// The operating system's file system.
FileSystem& system_files();

// Fault::resource if errno reports a lack of descriptors, memory or space; else `otherwise`.
Fault fault_of_errno(int cause, Fault otherwise);

// Message from errno: "open /a/b: No space left on device".
std::string describe_errno(const char* call, const std::string& path);

// Throws Error(Fault::resource) if `status`, a system call's result, is negative.
void require_success(int64_t status, const char* call, const std::string& path);

}  // namespace dtrain
