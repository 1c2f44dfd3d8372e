// Schedules of collectives: ring, direct, hierarchical, recursive doubling, tree. Pure arithmetic, executed over a
// transport.
#pragma once

#include <span>
#include <vector>

#include "dtrain/distributed/range.h"

namespace dtrain {

// Step of a rank: sends to `to` and receives from `from`, -1 for none. Received elements are added or overwrite. The
// send reads before the receive writes.
struct Transfer {
  int to = -1;
  Range send{};
  int from = -1;
  Range receive{};
  bool add = false;
};
using Transfers = std::vector<Transfer>;

// Splits `range` into `parts` nearly equal ranges, in multiples of 16 elements; some are empty if it is short.
std::vector<Range> split(Range range, int parts);

// The next three run among `members`, ranks in ring order; this rank has index `me`; `parts`: one per member.
// Reduce-scatter: member i ends with the sum of part i, added in the order i + 1, i + 2, ..., i.
Transfers ring_reduce_scatter(std::span<const int> members, int me, std::span<const Range> parts);
// All-gather of part i at member i.
Transfers ring_all_gather(std::span<const int> members, int me, std::span<const Range> parts);
// Both: each link carries 2 (n - 1) / n of `range`, the minimum (bandwidth-optimal).
Transfers ring_all_reduce(std::span<const int> members, int me, Range range);

// Direct variants: each member sends its parts to all others at once, so that it waits twice instead of 2 (n - 1)
// times. For members with shared memory: on a network all senders would congest one receiver. Part i is added in the
// order i, i - 1, ..., i + 1.
Transfers direct_reduce_scatter(std::span<const int> members, int me, std::span<const Range> parts);
Transfers direct_all_gather(std::span<const int> members, int me, std::span<const Range> parts);
Transfers direct_all_reduce(std::span<const int> members, int me, Range range);

// Direct within each host, rings of equal parts between hosts: 2 (hosts - 1) + 2 steps instead of 2 (n - 1). `nodes`:
// host of each rank; all hosts have equally many ranks.
Transfers hierarchical_all_reduce(std::span<const int> nodes, int rank, Range range);
bool suits_hierarchy(std::span<const int> nodes);

// Recursive doubling: log2 n steps with the whole `range`, for short messages. If n is not a power of two, surplus
// ranks send theirs to a lower rank and receive the result.
Transfers doubling_all_reduce(int rank, int ranks, Range range);

// Binomial tree from `root`.
Transfers tree_broadcast(int rank, int ranks, int root, Range range);

// Message of at most `segment` elements, for pipelining: a rank forwards one segment while it receives the next.
struct PlannedMessage {
  int peer = 0;
  Range range{};
  bool add = false;  // for receives: accumulate
  // Dependency. Of a send: number of receives that must be applied before. Of a receive: number of sends that must have
  // completed before it writes.
  size_t after = 0;
};
// Each list is executed in order; messages between two ranks are not reordered.
struct MessagePlan {
  std::vector<PlannedMessage> sends, receives;
};
MessagePlan plan_messages(const Transfers& schedule, int64_t segment);

}  // namespace dtrain
