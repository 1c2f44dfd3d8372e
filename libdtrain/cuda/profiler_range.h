// Names for parts of the work, as profilers show them.
#pragma once

#include <nvtx3/nvToolsExt.h>

namespace dtrain::cuda {

// One named range at a time.
class ProfilerRange {
 public:
  ProfilerRange() = default;
  ~ProfilerRange() { next(nullptr); }
  ProfilerRange(const ProfilerRange&) = delete;
  ProfilerRange& operator=(const ProfilerRange&) = delete;

  // Ends the range that is open, and opens another where it has a name.
  void next(const char* name) {
    if (open_) nvtxRangePop();
    if (name != nullptr) nvtxRangePushA(name);
    open_ = name != nullptr;
  }

 private:
  bool open_ = false;
};

}  // namespace dtrain::cuda
