// Ring, hierarchical, recursive doubling and tree schedules; segmentation into messages.
#include "libdtrain/distributed/ring.h"

#include <algorithm>
#include <map>

#include "dtrain/core/error.h"

namespace dtrain {
namespace {

int wrapped(int i, size_t count) {
  const int n = static_cast<int>(count);
  return (i % n + n) % n;
}

// n - 1 ring steps in which member `me` forwards part me + first, me + first - 1, ...
Transfers ring_steps(std::span<const int> members, int me, std::span<const Range> parts, int first, bool add) {
  DT_CHECK(members.size() == parts.size(), "ring of ", members.size(), " members with ", parts.size(), " parts");
  Transfers schedule;
  for (int turn = 0; turn + 1 < static_cast<int>(members.size()); ++turn) {
    const int sent = wrapped(me + first - turn, members.size()), received = wrapped(sent - 1, members.size());
    schedule.push_back({.to = members[static_cast<size_t>(wrapped(me + 1, members.size()))],
                        .send = parts[static_cast<size_t>(sent)],
                        .from = members[static_cast<size_t>(wrapped(me - 1, members.size()))],
                        .receive = parts[static_cast<size_t>(received)],
                        .add = add});
  }
  return schedule;
}

// n - 1 exchanges: `me` sends to the member `distance` ahead and receives from the one `distance` behind.
Transfers pairwise_exchange(std::span<const int> members, int me, std::span<const Range> parts, bool add) {
  DT_CHECK(members.size() == parts.size(), members.size(), " members with ", parts.size(), " parts");
  const auto part = [&](int member) { return parts[static_cast<size_t>(member)]; };
  Transfers schedule;
  for (int distance = 1; distance < static_cast<int>(members.size()); ++distance) {
    const int to = wrapped(me + distance, members.size()), from = wrapped(me - distance, members.size());
    schedule.push_back({.to = members[static_cast<size_t>(to)],
                        .send = part(add ? to : me),
                        .from = members[static_cast<size_t>(from)],
                        .receive = part(add ? me : from),
                        .add = add});
  }
  return schedule;
}

void append(Transfers& schedule, const Transfers& more) { schedule.insert(schedule.end(), more.begin(), more.end()); }

int power_of_two_within(int n) {
  int power = 1;
  while (power * 2 <= n) power *= 2;
  return power;
}

// One past the index of the last of the first `count` messages that overlaps `range`; 0: none.
size_t after_last_overlap(const std::vector<PlannedMessage>& messages, size_t count, const Range& range) {
  while (count > 0 && !messages[count - 1].range.overlaps(range)) --count;
  return count;
}

template <class Use>
void for_each_piece(Range range, int64_t segment, const Use& use) {
  for (int64_t begin = range.begin; begin < range.end; begin += segment)
    use(Range{begin, std::min(begin + segment, range.end)});
}

}  // namespace

std::vector<Range> split(Range range, int parts) {
  constexpr int64_t kMultiple = 16;  // a vector register or cache line
  std::vector<Range> ranges;
  const int64_t blocks = range.count() / kMultiple;
  int64_t begin = range.begin;
  for (int i = 1; i <= parts; ++i) {
    const int64_t end = i == parts ? range.end : range.begin + blocks * i / parts * kMultiple;
    ranges.push_back({begin, end});
    begin = end;
  }
  return ranges;
}

Transfers ring_reduce_scatter(std::span<const int> members, int me, std::span<const Range> parts) {
  return ring_steps(members, me, parts, -1, true);
}

Transfers ring_all_gather(std::span<const int> members, int me, std::span<const Range> parts) {
  return ring_steps(members, me, parts, 0, false);
}

Transfers ring_all_reduce(std::span<const int> members, int me, Range range) {
  const std::vector<Range> parts = split(range, static_cast<int>(members.size()));
  Transfers schedule = ring_reduce_scatter(members, me, parts);
  append(schedule, ring_all_gather(members, me, parts));
  return schedule;
}

Transfers direct_reduce_scatter(std::span<const int> members, int me, std::span<const Range> parts) {
  return pairwise_exchange(members, me, parts, true);
}

Transfers direct_all_gather(std::span<const int> members, int me, std::span<const Range> parts) {
  return pairwise_exchange(members, me, parts, false);
}

Transfers direct_all_reduce(std::span<const int> members, int me, Range range) {
  const std::vector<Range> parts = split(range, static_cast<int>(members.size()));
  Transfers schedule = direct_reduce_scatter(members, me, parts);
  append(schedule, direct_all_gather(members, me, parts));
  return schedule;
}

bool suits_hierarchy(std::span<const int> nodes) {
  std::map<int, int> counts;
  for (int node : nodes) ++counts[node];
  const int each = counts.empty() ? 0 : counts.begin()->second;
  return counts.size() > 1 && each > 1 &&
         std::ranges::all_of(counts, [&](const auto& entry) { return entry.second == each; });
}

Transfers hierarchical_all_reduce(std::span<const int> nodes, int rank, Range range) {
  DT_CHECK(suits_hierarchy(nodes), "hierarchical all-reduce: expected several hosts with equally many ranks, several");
  const int node = nodes[static_cast<size_t>(rank)];
  std::map<int, std::vector<int>> by_node;
  for (int i = 0; i < static_cast<int>(nodes.size()); ++i) by_node[nodes[static_cast<size_t>(i)]].push_back(i);
  const std::vector<int>& local = by_node[node];  // ranks of this host
  const auto me = static_cast<int>(std::ranges::find(local, rank) - local.begin());
  std::vector<int> across;  // ranks with this local index on each host
  for (const auto& [other, ranks] : by_node) across.push_back(ranks[static_cast<size_t>(me)]);
  const auto my_host = static_cast<int>(std::ranges::find(across, rank) - across.begin());

  const std::vector<Range> parts = split(range, static_cast<int>(local.size()));
  Transfers schedule = direct_reduce_scatter(local, me, parts);
  append(schedule, ring_all_reduce(across, my_host, parts[static_cast<size_t>(me)]));
  append(schedule, direct_all_gather(local, me, parts));
  return schedule;
}

Transfers doubling_all_reduce(int rank, int ranks, Range range) {
  const int power = power_of_two_within(ranks);
  const int beyond = ranks - power;
  if (rank >= power)
    return {{.to = rank - power, .send = range, .from = -1, .receive = {}, .add = false},
            {.to = -1, .send = {}, .from = rank - power, .receive = range, .add = false}};
  Transfers schedule;
  if (rank < beyond) schedule.push_back({.to = -1, .send = {}, .from = rank + power, .receive = range, .add = true});
  for (int distance = 1; distance < power; distance *= 2)
    schedule.push_back({.to = rank ^ distance, .send = range, .from = rank ^ distance, .receive = range, .add = true});
  if (rank < beyond) schedule.push_back({.to = rank + power, .send = range, .from = -1, .receive = {}, .add = false});
  return schedule;
}

Transfers tree_broadcast(int rank, int ranks, int root, Range range) {
  const int me = wrapped(rank - root, static_cast<size_t>(ranks));
  const auto rank_of = [&](int number) { return wrapped(number + root, static_cast<size_t>(ranks)); };
  Transfers schedule;
  int distance = power_of_two_within(ranks);
  if (me != 0) {  // from the rank without my lowest bit
    distance = me & -me;
    schedule.push_back({.to = -1, .send = {}, .from = rank_of(me - distance), .receive = range, .add = false});
    distance /= 2;
  }
  for (; distance > 0; distance /= 2) {
    if (me + distance < ranks)
      schedule.push_back({.to = rank_of(me + distance), .send = range, .from = -1, .receive = {}, .add = false});
  }
  return schedule;
}

MessagePlan plan_messages(const Transfers& schedule, int64_t segment) {
  MessagePlan plan;
  for (const Transfer& transfer : schedule) {
    const size_t received = plan.receives.size();  // in earlier steps
    if (transfer.to >= 0)
      for_each_piece(transfer.send, segment, [&](Range piece) {
        plan.sends.push_back({.peer = transfer.to,
                              .range = piece,
                              .add = false,
                              .after = after_last_overlap(plan.receives, received, piece)});
      });
    if (transfer.from >= 0)
      for_each_piece(transfer.receive, segment, [&](Range piece) {
        plan.receives.push_back({.peer = transfer.from,
                                 .range = piece,
                                 .add = transfer.add,
                                 .after = after_last_overlap(plan.sends, plan.sends.size(), piece)});
      });
  }
  return plan;
}

}  // namespace dtrain
