// Schedules of collectives: who sends which elements to whom, and in which order. Pure arithmetic; a transport runs it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace dtrain {

// Elements [begin, end) of what is summed or copied.
struct Range {
  int64_t begin = 0, end = 0;
  int64_t count() const { return end - begin; }
  bool overlaps(const Range& other) const { return begin < other.end && other.begin < end; }
};

// One turn of a rank: it sends to `to` and takes from `from`, either of which may be -1, nobody. What it takes is added
// to what is there, or replaces it. It sends what is there before it takes.
struct Transfer {
  int to = -1;
  Range send{};
  int from = -1;
  Range receive{};
  bool add = false;
};
using Transfers = std::vector<Transfer>;

// `parts` ranges that make up `range`, as equal as multiples of 16 elements allow; some are empty where it is short.
std::vector<Range> split(Range range, int parts);

// The three below run among `members`, ranks in ring order, of which this is number `me`; `parts`: one per member.
// Afterwards member i holds the sum of part i, added in the order i + 1, i + 2, ..., i.
Transfers ring_reduce_scatter(std::span<const int> members, int me, std::span<const Range> parts);
// From part i at member i: all parts everywhere.
Transfers ring_all_gather(std::span<const int> members, int me, std::span<const Range> parts);
// Both: 2 (n - 1) / n of `range` goes through each link, which is the least that is possible.
Transfers ring_all_reduce(std::span<const int> members, int me, Range range);

// The same three without a ring: each member sends the others their parts straight away, so that it waits for them
// twice instead of 2 (n - 1) times. For members that share memory: a network would have all senders meet at one
// receiver. Part i is added in the order i, i - 1, ..., i + 1.
Transfers direct_reduce_scatter(std::span<const int> members, int me, std::span<const Range> parts);
Transfers direct_all_gather(std::span<const int> members, int me, std::span<const Range> parts);
Transfers direct_all_reduce(std::span<const int> members, int me, Range range);

// Direct inside each host, rings of equal parts between the hosts, and back: 2 (hosts - 1) + 2 turns instead of
// 2 (n - 1). `nodes`: the host of each rank; all have equally many.
Transfers hierarchical_all_reduce(std::span<const int> nodes, int rank, Range range);
bool suits_hierarchy(std::span<const int> nodes);

// log2 n turns with the whole of `range` each, for short messages. Where n is no power of two, those beyond the largest
// one hand theirs to a rank below and get the result back.
Transfers doubling_all_reduce(int rank, int ranks, Range range);

// A binomial tree from `root`.
Transfers tree_broadcast(int rank, int ranks, int root, Range range);

// A message of a schedule that was cut into messages of at most `segment` elements, so that a rank passes on the
// beginning of a part while it receives the rest.
struct Message {
  int peer = 0;
  Range range{};
  bool add = false;  // for one that is received
  // For one that is sent: so many receives must have been applied before. For one that is received: so many sends must
  // have left before it changes what is there.
  size_t after = 0;
};
// Each list is worked through in order; between two ranks messages arrive in the order in which they were sent.
struct MessagePlan {
  std::vector<Message> sends, receives;
};
MessagePlan plan_messages(const Transfers& schedule, int64_t segment);

}  // namespace dtrain
