// GpuWatchdog: ends the job if a step does not complete on the GPU, since a rank whose peers have stopped would wait
// there forever.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <thread>

#include "libdtrain/distributed/awake.h"
#include "libdtrain/distributed/nccl_comm.h"

namespace dtrain::nccl {

class GpuWatchdog {
 public:
  GpuWatchdog(Group& group, Context& context, Comm& comm);
  ~GpuWatchdog();
  GpuWatchdog(const GpuWatchdog&) = delete;
  GpuWatchdog& operator=(const GpuWatchdog&) = delete;

  // `end` must be past within the timeout of the group's section, counted from now or from the previous event's
  // completion.
  void add(const Event& end);

 private:
  struct Step {
    Event end;
    double limit = 0;
    std::string where;
  };
  void run();
  // Drops completed steps; returns the failure, empty if none.
  std::string look(std::unique_lock<std::mutex>& lock);

  Group& group_;
  Context& context_;
  Comm& comm_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Step> steps_;
  SteadyTime front_since_{};  // when the first step became the oldest
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace dtrain::nccl
