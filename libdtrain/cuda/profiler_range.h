// NVTX ranges: names of work in Nsight Systems.
#pragma once

#include <nvtx3/nvToolsExt.h>

namespace dtrain::cuda {

// At most one open range.
class ProfilerRange {
 public:
  ProfilerRange() = default;
  ~ProfilerRange() { next(nullptr); }
  ProfilerRange(const ProfilerRange&) = delete;
  ProfilerRange& operator=(const ProfilerRange&) = delete;

  // Closes the open range; opens another if `name` is not null.
  void next(const char* name) {
    if (open_) nvtxRangePop();
    if (name != nullptr) nvtxRangePushA(name);
    open_ = name != nullptr;
  }

 private:
  bool open_ = false;
};

}  // namespace dtrain::cuda
