#include "libdtrain/core/recording_thread.h"

namespace dtrain {

void RecordingThread::enter(Device device) {
  const std::lock_guard lock(mutex_);
  DT_CHECK(tapes_ == 0 || thread_ == std::this_thread::get_id(), "a tape on ", device,
           ": another tape of the same context records on another thread; one thread records at a time");
  thread_ = std::this_thread::get_id();
  ++tapes_;
}

void RecordingThread::leave() noexcept {
  const std::lock_guard lock(mutex_);
  --tapes_;
}

}  // namespace dtrain
