// Watch: a thread that ends the job where work on a GPU does not come to its end, since a rank whose peers have stopped
// waits for them on the GPU and would do so for ever.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <thread>

#include "libdtrain/distributed/awake.h"
#include "libdtrain/distributed/nccl_comm.h"

namespace dtrain::nccl {

class Watch {
 public:
  Watch(Group& group, Context& context, Comm& comm);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // `end` is due within the limit of the group's section, from now or from when the one before it is past.
  void add(const Moment& end);

 private:
  struct Step {
    Moment end;
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
