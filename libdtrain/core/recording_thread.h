// RecordingThread: guard that allows tapes of one thread at a time to record on a context.
#pragma once

#include <mutex>
#include <thread>

#include "dtrain/core/types.h"

namespace dtrain {

class RecordingThread {
 public:
  // Called when a tape on `device` begins and ends. enter() throws Error while a tape of another thread records.
  void enter(Device device);
  void leave() noexcept;

 private:
  std::mutex mutex_;
  std::thread::id thread_;
  int tapes_ = 0;  // active tapes of that thread
};

}  // namespace dtrain
