// Communicator: all-reduce and broadcast of device memory over the ranks of a Group.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "dtrain/core/context.h"
#include "dtrain/distributed/group.h"

namespace dtrain {

struct CommunicatorOptions {
  DType wire = DType::f32;  // wire type: f32, bf16 or f16; sums are accumulated in f32
  // communication: overlapped with compute, for gradients; compute: in order, for SyncBN statistics.
  Stream stream = Stream::communication;
  // ring, direct, hierarchical, doubling (recursive); NCCL: ring, tree, ...; auto: by message size, from a fixed table
  std::string algorithm = "auto";
  int64_t segment = 1 << 17;  // elements per message, for pipelining: a rank forwards one while it receives the next
  bool even_alone = false;    // use the transport even with one rank, for measurements
};

// Seconds and bytes since the last report.
struct CommunicatorTimes {
  double busy = 0;     // a collective was in progress
  double exposed = 0;  // the compute stream waited for it (not overlapped)
  double bytes = 0;    // all-reduced
};

// Timeline of an all-reduce, by the host's clock.
struct AllReduceReport {
  std::string what{};  // name given to all_reduce()
  double bytes = 0;
  std::chrono::steady_clock::time_point queued{}, begun{}, ended{};  // begun: the first message may be sent
};

// All ranks make the same calls in the same order. Failures end the process through GroupOptions::fail.
class Communicator {
 public:
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  Group& group() const { return group_; }
  int rank() const { return group_.rank(); }
  int size() const { return group_.size(); }
  const CommunicatorOptions& options() const { return options_; }
  // Wire type; bf16 and f16 round the summands.
  DType wire() const { return options_.wire; }

  // Sum all-reduce of f32 tensors, in place, as one message; results are bitwise equal on all ranks. Ordered after the
  // work in the compute stream; asynchronous, on a CPU too. The tensors must live until join(). `what`: name for
  // reports, equal on all ranks. `exact`: f32 on the wire, regardless of wire().
  virtual void all_reduce(std::span<const Tensor> ranges, const std::string& what, bool exact = false) = 0;
  // Broadcast of bytes from rank `root`, any type.
  virtual void broadcast(const Tensor& x, int root, const std::string& what) = 0;
  // The compute stream (on a CPU the caller) waits for all collectives so far.
  virtual void join() = 0;
  // Watchdog for an enqueued step: ends the job if `end` is not past within the section's timeout.
  virtual void watch(const Event&) {}

  // Describes the order of additions, for checkpoints: "ring over MPI, f32".
  virtual std::string describe() const = 0;
  virtual CommunicatorTimes take_times() = 0;
  // Calls `hear` after each all_reduce, possibly on another thread; it must not throw. Set it while no all-reduce is in
  // progress. All-reduces without individual timing (NCCL, a single rank) are not reported.
  virtual void on_all_reduce(std::function<void(const AllReduceReport&)>) {}
  [[deprecated("renamed: on_all_reduce")]] void on_sum(std::function<void(const AllReduceReport&)> hear) {
    on_all_reduce(std::move(hear));
  }

 protected:
  explicit Communicator(Group& group, CommunicatorOptions options = {}) : group_(group), options_(std::move(options)) {}
  Group& group_;
  const CommunicatorOptions options_;
};

// Communicator over the group's transport for a CPU context, over NCCL for a CUDA context; a single rank needs neither.
// Collective.
std::unique_ptr<Communicator> make_communicator(Group& group, Context& context,
                                                const CommunicatorOptions& options = {});

}  // namespace dtrain
