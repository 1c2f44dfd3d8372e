// Comm: NCCL communicator over the GPUs of a group, created, used and destroyed without calls that could block forever.
#pragma once

#include <functional>
#include <mutex>
#include <string>

#include "dtrain/distributed/group.h"
#include "libdtrain/cuda/nccl_library.h"
#include "libdtrain/cuda/runtime.h"

namespace dtrain::nccl {

class Comm {
 public:
  // Collective. `algorithm`: see CommunicatorOptions::algorithm. `most_blocks`: limit of its kernels' blocks; 0: NCCL's
  // default. Throws Error(Fault::config) if two ranks share a GPU or NCCL versions differ.
  Comm(Group& group, const cuda::Runtime& runtime, const std::string& algorithm, int most_blocks);
  // Waits for enqueued work; CUDA graphs that contain its collectives must be destroyed before. After an error it waits
  // for nothing.
  ~Comm();
  Comm(const Comm&) = delete;
  Comm& operator=(const Comm&) = delete;

  // Runs `calls` as one NCCL group; returns once it is enqueued. Errors end the job.
  using Calls = std::function<ncclResult_t(const cuda::Nccl&, ncclComm_t)>;
  void enqueue(const std::string& what, const Calls& calls);

  // For other threads, neither blocks on enqueue(): asynchronous NCCL error, empty if none; and abort of all work on
  // this rank.
  std::string trouble();
  void abort();

 private:
  void check(ncclResult_t status, const std::string& call);
  void settle(const std::string& what);
  bool wait_while_in_progress(double limit, ncclResult_t& state);
  [[noreturn]] void stop(const std::string& report);

  Group& group_;
  std::mutex mutex_;  // NCCL is not thread-safe per communicator
  ncclComm_t comm_ = nullptr;
};

}  // namespace dtrain::nccl
