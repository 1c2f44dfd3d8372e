// FileLock: inter-process lock on a file or directory, released when its holder ends.
#pragma once

#include <functional>
#include <string>

namespace dtrain {

class FileLock {
 public:
  enum class IfHeld { refuse, wait };

  // Locks the file `path` by flock, creating it if necessary, and writes the holder's process id to it. If another
  // process holds the lock, waits or throws Error(Fault::config) naming its id. Also throws Error(Fault::config),
  // leaving it unchanged, if `path` is a link or has other content, and Error(Fault::resource) if it cannot be opened
  // or locked. While waiting, polls `stop`: true ends the wait with Error(Fault::resource).
  explicit FileLock(const std::string& path, IfHeld if_held = IfHeld::refuse, const std::function<bool()>& stop = {});
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int fd_;
};

}  // namespace dtrain
