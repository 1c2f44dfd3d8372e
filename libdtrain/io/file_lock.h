// A lock on a directory or a file, held by one process at a time and released by its death.
#pragma once

#include <functional>
#include <string>

namespace dtrain {

class FileLock {
 public:
  enum class IfHeld { refuse, wait };

  // Locks by flock on the file `path`, made where it is missing; the holder's process id is written in it. Where
  // another process holds it, waits for it or throws Error(Fault::config) naming that id. Throws Error(Fault::config),
  // too, where `path` is a link or holds something else, which stays as it is, and Error(Fault::resource) where it
  // cannot be opened or locked.
  // `stop` is asked while it waits: true ends the waiting with Error(Fault::resource).
  explicit FileLock(const std::string& path, IfHeld if_held = IfHeld::refuse, const std::function<bool()>& stop = {});
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int fd_;
};

}  // namespace dtrain
