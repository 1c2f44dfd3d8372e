#include "dtrain/io/file_system.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

namespace dtrain {

int FileSystem::create(const std::string& path) {
  return ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
}
ssize_t FileSystem::write(int fd, const void* data, size_t size) { return ::write(fd, data, size); }
int FileSystem::sync(int fd) { return ::fsync(fd); }
int FileSystem::close(int fd) { return ::close(fd); }
int FileSystem::rename(const std::string& from, const std::string& to) { return ::rename(from.c_str(), to.c_str()); }
int FileSystem::unlink(const std::string& path) { return ::unlink(path.c_str()); }
int FileSystem::symlink(const std::string& target, const std::string& path) {
  return ::symlink(target.c_str(), path.c_str());
}
int FileSystem::make_directory(const std::string& path) { return ::mkdir(path.c_str(), 0777); }
int FileSystem::remove_directory(const std::string& path) { return ::rmdir(path.c_str()); }

int FileSystem::sync_directory(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return -1;
  const int status = ::fsync(fd);
  const int cause = errno;
  ::close(fd);
  // Some network and FUSE file systems do not support fsync of directories; their renames are as durable as possible.
  if (status < 0 && (cause == EINVAL || cause == ENOTSUP)) return 0;
  errno = cause;
  return status;
}

int FileSystem::free_bytes(const std::string& path, uint64_t& bytes) {
  struct statvfs info;
  const int status = ::statvfs(path.c_str(), &info);
  if (status == 0) bytes = static_cast<uint64_t>(info.f_bavail) * info.f_frsize;
  return status;
}

FileSystem& system_files() {
  static FileSystem files;
  return files;
}

Fault fault_of_errno(int cause, Fault otherwise) {
  for (const int scarcity : {EMFILE, ENFILE, ENOMEM, ENOSPC, EDQUOT})
    if (cause == scarcity) return Fault::resource;
  return otherwise;
}

std::string describe_errno(const char* call, const std::string& path) {
  const int cause = errno;
  return concat(call, " ", path, ": ", std::generic_category().message(cause));
}

void require_success(int64_t status, const char* call, const std::string& path) {
  if (status < 0) throw Error(Fault::resource, describe_errno(call, path));
}

}  // namespace dtrain
