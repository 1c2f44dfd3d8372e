// Communicator: sums and broadcasts of device memory over the ranks of a Group.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "libdtrain/core/context.h"
#include "libdtrain/distributed/group.h"

namespace dtrain {

struct CommunicatorOptions {
  DType wire = DType::f32;  // the type of numbers under way: f32, bf16 or f16; sums are f32
  // Gradients travel beside the compute queue; sums that the next op needs (SyncBN), in it.
  Stream stream = Stream::communication;
  // ring, direct, hierarchical, doubling; NCCL: ring, tree, ...; auto: by size, a fixed table
  std::string algorithm = "auto";
  int64_t segment = 1 << 17;  // elements of a message: what a rank passes on while it receives the next
  bool even_alone = false;    // one rank goes through the transport too: to measure it
};

// Seconds, for what was queued since the last report.
struct CommunicatorTimes {
  double busy = 0;     // some collective was under way
  double exposed = 0;  // the compute queue waited for it
  double bytes = 0;    // summed
};

// When a sum over the ranks came about, by the clock of this host.
struct SumReport {
  std::string what{};  // as it was given to all_reduce
  double bytes = 0;
  std::chrono::steady_clock::time_point queued{}, begun{}, ended{};  // begun: the first message may leave
};

// Every rank makes the same calls in the same order. Failures end the process through GroupOptions::fail.
class Communicator {
 public:
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  Group& group() const { return group_; }
  int rank() const { return group_.rank(); }
  int size() const { return group_.size(); }
  const CommunicatorOptions& options() const { return options_; }
  // The type of numbers under way; bf16 and f16 round what is summed.
  DType wire() const { return options_.wire; }

  // Sums f32 tensors over the ranks, in place, as one message; the same bits come out on every rank. Queued after what
  // the compute queue holds now; a CPU's caller does not wait. The tensors live until join(). `what` names it in
  // reports and must be equal on all ranks. `exact`: as f32, whatever wire() is.
  virtual void all_reduce(std::span<const Tensor> ranges, const std::string& what, bool exact = false) = 0;
  // The bytes of rank `root` to all, any type.
  virtual void broadcast(const Tensor& x, int root, const std::string& what) = 0;
  // What the compute queue does from here on waits for all of the above. On a CPU the caller waits.
  virtual void join() = 0;
  // Watches a step that was queued: ends the job where `end` is not past within the limit of the section.
  virtual void watch(const Event&) {}

  // What fixes the order in which numbers are added, for the checkpoint: "ring over MPI, f32".
  virtual std::string describe() const = 0;
  virtual CommunicatorTimes take_times() = 0;
  // From now on `hear` is called after each all_reduce, maybe by another thread: it must not throw. To be set while
  // none is under way. Sums that are not timed one by one, such as those of NCCL and those of one rank alone, are left
  // out.
  virtual void on_sum(std::function<void(const SumReport&)>) {}

 protected:
  explicit Communicator(Group& group, CommunicatorOptions options = {}) : group_(group), options_(std::move(options)) {}
  Group& group_;
  const CommunicatorOptions options_;
};

// Over the group's own connections for a CPU context, over NCCL for a CUDA one; one rank, which has nothing to do,
// needs neither. Collective.
std::unique_ptr<Communicator> make_communicator(Group& group, Context& context,
                                                const CommunicatorOptions& options = {});

}  // namespace dtrain
