// Watchdog: a thread that ends the job where work on a GPU does not come to its end, since a rank whose peers have
// stopped waits for them on the GPU and would do so for ever.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <thread>

#include "libdtrain/distributed/awake.h"
#include "libdtrain/distributed/nccl_comm.h"

namespace dtrain::nccl {

class Watchdog {
 public:
  Watchdog(Group& group, Context& context, Comm& comm);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // `end` is due within the limit of the group's section, from now or from when the one before it is past.
  void add(const Event& end);

 private:
  struct Step {
    Event end;
    double limit = 0;
    std::string where;
  };
  void run();
  // Past steps are dropped; what is wrong, or nothing.
  std::string look(std::unique_lock<std::mutex>& lock);

  Group& group_;
  Context& context_;
  Comm& comm_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Step> steps_;
  SteadyTime front_since_{};  // when the first of them became it
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace dtrain::nccl
