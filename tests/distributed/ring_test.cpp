// Schedules, executed by simulated ranks with randomly interleaved messages.
#include "libdtrain/distributed/ring.h"

#include <utility>
#include <vector>

#include "dtrain/core/rng.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

// Ranks that execute their messages like a transport: each list in order, several in flight, one send or receipt at a
// time in random order.
class Simulation {
 public:
  using Initial = double (*)(int rank, int64_t i);
  Simulation(const std::vector<Transfers>& schedules, int64_t segment, int64_t count, uint64_t seed,
             Initial initial_value = initial)
      : wires_(schedules.size() * schedules.size()), random_(seed, 0) {
    for (size_t rank = 0; rank < schedules.size(); ++rank) {
      Rank& one = ranks_.emplace_back();
      one.plan = plan_messages(schedules[rank], segment);
      left_ += one.plan.sends.size() + one.plan.receives.size();
      for (int64_t i = 0; i < count; ++i) one.values.push_back(initial_value(static_cast<int>(rank), i));
    }
  }

  // Sums are exact.
  static double initial(int rank, int64_t i) { return (rank + 1) * 1000.0 + static_cast<double>(i % 97); }

  void run() {
    size_t idle = 0;
    while (left_ != 0 && idle < 1000 * ranks_.size()) {
      const auto turn = static_cast<int>(random_.below(static_cast<uint32_t>(ranks_.size())));
      const bool advanced = advance(turn, random_.below(2) == 0);
      left_ -= advanced ? 1 : 0;
      idle = advanced ? 0 : idle + 1;
    }
    ASSERT_EQ(left_, 0U) << "stuck";
    for (size_t i = 0; i < wires_.size(); ++i)
      EXPECT_EQ(wires_[i].received, wires_[i].sent.size()) << i / ranks_.size() << " to " << i % ranks_.size();
  }

  const std::vector<double>& values(int rank) const { return ranks_[static_cast<size_t>(rank)].values; }

 private:
  struct Rank {
    MessagePlan plan;
    std::vector<double> values;
    size_t sent = 0, received = 0;
  };

  struct Wire {
    std::vector<std::vector<double>> sent;  // messages; those received are emptied
    size_t received = 0;
  };
  Wire& wire(int from, int to) { return wires_[static_cast<size_t>(from) * ranks_.size() + static_cast<size_t>(to)]; }

  bool advance(int rank, bool sends) {
    Rank& me = ranks_[static_cast<size_t>(rank)];
    if (sends) {
      if (me.sent == me.plan.sends.size() || me.plan.sends[me.sent].after > me.received) return false;
      const PlannedMessage& message = me.plan.sends[me.sent++];
      wire(rank, message.peer)
          .sent.emplace_back(me.values.begin() + message.range.begin, me.values.begin() + message.range.end);
      return true;
    }
    if (me.received == me.plan.receives.size()) return false;
    const PlannedMessage& message = me.plan.receives[me.received];
    Wire& from = wire(message.peer, rank);
    if (message.after > me.sent || from.received == from.sent.size()) return false;
    const std::vector<double> received = std::move(from.sent[from.received++]);
    EXPECT_EQ(static_cast<int64_t>(received.size()), message.range.count());
    for (int64_t i = 0; i < message.range.count(); ++i) {
      double& value = me.values[static_cast<size_t>(message.range.begin + i)];
      value = received[static_cast<size_t>(i)] + (message.add ? value : 0);
    }
    ++me.received;
    return true;
  }

  std::vector<Rank> ranks_;
  std::vector<Wire> wires_;  // of all pairs of ranks
  size_t left_ = 0;          // messages that are not yet sent, and not yet received
  RandomStream random_;
};

std::vector<int> all_ranks(int n) {
  std::vector<int> ranks;
  for (int i = 0; i < n; ++i) ranks.push_back(i);
  return ranks;
}

template <class ScheduleOf>
void expect_sums(int ranks, int64_t count, int64_t segment, const ScheduleOf& schedule_of) {
  SCOPED_TRACE(concat(ranks, " ranks, ", count, " elements in messages of ", segment));
  std::vector<Transfers> schedules;
  for (int rank = 0; rank < ranks; ++rank) schedules.push_back(schedule_of(rank));
  Simulation simulation(schedules, segment, count, static_cast<uint64_t>(ranks * 1000 + count));
  simulation.run();
  std::vector<double> sums(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    for (int rank = 0; rank < ranks; ++rank) sums[static_cast<size_t>(i)] += Simulation::initial(rank, i);
  for (int rank = 0; rank < ranks; ++rank) ASSERT_EQ(simulation.values(rank), sums) << "rank " << rank;
}

constexpr int64_t kCounts[] = {0, 1, 15, 16, 17, 63, 257, 1000};

TEST(Ring, SumsOnEveryRank) {
  for (int ranks = 1; ranks <= 64; ++ranks)
    for (const int64_t count : kCounts)
      for (const int64_t segment : {int64_t{7}, int64_t{1} << 20})
        expect_sums(ranks, count, segment, [&](int rank) {
          return ring_all_reduce(all_ranks(ranks), rank, {0, count});
        });
}

TEST(Ring, EveryPartReachesEveryRankOnce) {
  for (int ranks = 2; ranks <= 64; ++ranks) {
    const int64_t count = ranks * 16 + 5;
    for (int rank = 0; rank < ranks; ++rank) {
      std::vector<int> taken(static_cast<size_t>(count));
      for (const Transfer& transfer : ring_all_reduce(all_ranks(ranks), rank, {0, count}))
        if (!transfer.add)
          for (int64_t i = transfer.receive.begin; i < transfer.receive.end; ++i) ++taken[static_cast<size_t>(i)];
      // Each element is received once, except for the part that this rank has reduced itself.
      const Range own = split({0, count}, ranks)[static_cast<size_t>(rank)];
      for (int64_t i = 0; i < count; ++i)
        ASSERT_EQ(taken[static_cast<size_t>(i)], i >= own.begin && i < own.end ? 0 : 1) << rank << " of " << ranks;
    }
  }
}

TEST(Ring, SendsAsLittleAsPossible) {
  constexpr int kRanks = 5;
  constexpr int64_t kCount = kRanks * 160;
  for (int rank = 0; rank < kRanks; ++rank) {
    int64_t sent = 0;
    for (const Transfer& transfer : ring_all_reduce(all_ranks(kRanks), rank, {0, kCount}))
      sent += transfer.send.count();
    EXPECT_EQ(sent, 2 * (kRanks - 1) * kCount / kRanks);
  }
}

TEST(Direct, SumsOnEveryRank) {
  for (int ranks = 1; ranks <= 64; ++ranks)
    for (const int64_t count : kCounts)
      for (const int64_t segment : {int64_t{7}, int64_t{1} << 20})
        expect_sums(ranks, count, segment, [&](int rank) {
          return direct_all_reduce(all_ranks(ranks), rank, {0, count});
        });
}

// A rank forwards nothing that it has received, and waits for all its sums before it distributes them.
TEST(Direct, WaitsTwice) {
  for (int ranks = 2; ranks <= 64; ++ranks) {
    const auto others = static_cast<size_t>(ranks - 1);
    const MessagePlan plan = plan_messages(direct_all_reduce(all_ranks(ranks), 1, {0, ranks * 16}), 16);
    ASSERT_EQ(plan.sends.size(), 2 * others);
    for (size_t i = 0; i < plan.sends.size(); ++i) EXPECT_EQ(plan.sends[i].after, i < others ? 0 : others);
  }
}

TEST(Hierarchy, SumsOnEveryRank) {
  for (const int hosts : {2, 3, 4, 8})
    for (const int each : {2, 3, 8})
      for (const int64_t count : kCounts) {
        std::vector<int> in_blocks, dealt;  // ranks by slot, mpirun's default, and by node
        for (int rank = 0; rank < hosts * each; ++rank) {
          in_blocks.push_back(rank / each);
          dealt.push_back(rank % hosts);
        }
        for (const std::vector<int>& nodes : {in_blocks, dealt})
          expect_sums(hosts * each, count, 7, [&](int rank) {
            return hierarchical_all_reduce(nodes, rank, {0, count});
          });
      }
}

TEST(Hierarchy, SuitsEqualHostsOnly) {
  const std::vector<int> equal{0, 0, 1, 1}, uneven{0, 0, 1}, one{0, 0}, single{0, 1};
  EXPECT_TRUE(suits_hierarchy(equal));
  for (const std::vector<int>& nodes : {uneven, one, single}) {
    EXPECT_FALSE(suits_hierarchy(nodes));
    expect_error([&] { hierarchical_all_reduce(nodes, 0, {0, 10}); }, Fault::config, "equally many ranks");
  }
}

TEST(Doubling, SumsOnEveryRank) {
  for (int ranks = 1; ranks <= 64; ++ranks)
    for (const int64_t count : kCounts)
      expect_sums(ranks, count, 100, [&](int rank) { return doubling_all_reduce(rank, ranks, {0, count}); });
}

// Floating-point sums depend on the order, which must be equal on all ranks.
TEST(Doubling, GivesTheSameBitsEverywhere) {
  for (int ranks = 2; ranks <= 64; ++ranks) {
    std::vector<Transfers> schedules;
    for (int rank = 0; rank < ranks; ++rank) schedules.push_back(doubling_all_reduce(rank, ranks, {0, 3}));
    Simulation simulation(schedules, 100, 3, 1,
                          [](int rank, int64_t i) { return 1.0 / (rank + 3.7 + static_cast<double>(i)); });
    simulation.run();
    for (int rank = 1; rank < ranks; ++rank) ASSERT_EQ(simulation.values(rank), simulation.values(0)) << ranks;
  }
}

TEST(Tree, BroadcastsFromAnyRoot) {
  for (int ranks = 1; ranks <= 33; ++ranks)
    for (const int root : {0, 1, ranks / 2, ranks - 1}) {
      if (root >= ranks) continue;
      std::vector<Transfers> schedules;
      for (int rank = 0; rank < ranks; ++rank) schedules.push_back(tree_broadcast(rank, ranks, root, {0, 20}));
      Simulation simulation(schedules, 7, 20, 1);
      simulation.run();
      for (int rank = 0; rank < ranks; ++rank)
        for (int64_t i = 0; i < 20; ++i)
          ASSERT_EQ(simulation.values(rank)[static_cast<size_t>(i)], Simulation::initial(root, i));
    }
}

TEST(Split, CoversTheRange) {
  for (const int parts : {1, 2, 3, 7, 64})
    for (const int64_t count : kCounts) {
      const std::vector<Range> ranges = split({5, 5 + count}, parts);
      ASSERT_EQ(ranges.size(), static_cast<size_t>(parts));
      int64_t at = 5;
      for (const Range& range : ranges) {
        EXPECT_EQ(range.begin, at);
        EXPECT_GE(range.end, range.begin);
        at = range.end;
      }
      EXPECT_EQ(at, 5 + count);
    }
}

}  // namespace
}  // namespace dtrain
