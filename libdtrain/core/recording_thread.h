// RecordingThread: the one thread whose tapes record on a context.
#pragma once

#include <mutex>
#include <thread>

#include "libdtrain/core/types.h"

namespace dtrain {

class RecordingThread {
 public:
  // A tape that records on `device` lives from the one to the other. Throws Error while another thread's does.
  void enter(Device device);
  void leave() noexcept;

 private:
  std::mutex mutex_;
  std::thread::id thread_;
  int tapes_ = 0;  // tapes of that thread
};

}  // namespace dtrain
