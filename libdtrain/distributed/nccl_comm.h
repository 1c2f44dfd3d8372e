// Comm: NCCL's own communicator over the GPUs of a group, made, used and ended without a call that could block for
// ever.
#pragma once

#include <functional>
#include <mutex>
#include <string>

#include "libdtrain/cuda/nccl_library.h"
#include "libdtrain/cuda/runtime.h"
#include "libdtrain/distributed/group.h"

namespace dtrain::nccl {

class Comm {
 public:
  // Collective. `algorithm`: as CommunicatorOptions::algorithm. `most_blocks`: of its kernels; 0: as NCCL decides.
  // Throws Error(Fault::config) where two ranks have one GPU or different versions of NCCL.
  Comm(Group& group, const cuda::Runtime& runtime, const std::string& algorithm, int most_blocks);
  // What it has queued is waited for, and recorded steps that hold some of it must be gone; not so after an error.
  ~Comm();
  Comm(const Comm&) = delete;
  Comm& operator=(const Comm&) = delete;

  // What `calls` asks of NCCL, as one; returns once it is on its streams. What goes wrong ends the job.
  using Calls = std::function<ncclResult_t(const cuda::Nccl&, ncclComm_t)>;
  void queue(const std::string& what, const Calls& calls);

  // For another thread, neither waits for queue(): what NCCL found wrong with work that was queued, or nothing; and the
  // end of all of its work on this rank, finished or not.
  std::string trouble();
  void abort();

 private:
  void check(ncclResult_t status, const std::string& call);
  void settle(const std::string& what);
  bool wait_while_in_progress(double limit, ncclResult_t& state);
  [[noreturn]] void stop(const std::string& report);

  Group& group_;
  std::mutex mutex_;  // NCCL wants one call at a time
  ncclComm_t comm_ = nullptr;
};

}  // namespace dtrain::nccl
