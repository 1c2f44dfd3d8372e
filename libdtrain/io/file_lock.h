// A lock on a directory, held by one process at a time and released by its death.
#pragma once

#include <string>

namespace dtrain {

class FileLock {
 public:
  // Locks by flock on the file `path`, made where it is missing; the holder's process id is written in it. Throws
  // Error(Fault::config) naming that id where another process holds it, Error(Fault::resource) where it cannot be
  // opened.
  explicit FileLock(const std::string& path);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int fd_;
};

}  // namespace dtrain
