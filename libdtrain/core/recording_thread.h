// RecordingThread: the one thread whose tapes record on a context.
#pragma once

#include <mutex>
#include <thread>

#include "libdtrain/core/types.h"

namespace dtrain {

class RecordingThread {
 public:
  // A tape that records on `device` calls these when it begins and when it ends. enter() throws Error while a tape of
  // another thread records.
  void enter(Device device);
  void leave() noexcept;

 private:
  std::mutex mutex_;
  std::thread::id thread_;
  int tapes_ = 0;  // tapes of that thread
};

}  // namespace dtrain
