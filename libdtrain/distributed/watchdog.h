// Watchdog: what a rank knows about its collectives and those of its peers, how long each may take, and what to say
// when one takes longer. It neither sends nor waits: the transport's thread asks it, and passes texts on.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "libdtrain/distributed/awake.h"
#include "libdtrain/distributed/group.h"

namespace dtrain {

// A collective as a rank does it. All but `rank`-local times must agree between ranks.
struct CollectiveId {
  std::string lane;       // collectives of a lane come one after the other
  uint64_t sequence = 0;  // within the lane, from 1
  std::string what;
  uint64_t bytes = 0;
  Section section = Section::setup;
  uint64_t step = 0;
  bool operator==(const CollectiveId&) const = default;
  std::string to_string() const;  // "gradients #58 'bucket 2', 26214400 bytes, of step 7"
};

std::string name_of(Section section, uint64_t step);  // "step 7", "the evaluation after step 7", "set-up"

class Watchdog {
 public:
  // `ranks`: names for people.
  Watchdog(int rank, std::vector<std::string> ranks, const GroupOptions& limits);

  // Reports of this rank, in a lane: a collective begins, or the one that began last is done.
  void begin(const CollectiveId& id, SteadyTime now);
  void end(const std::string& lane, SteadyTime now);
  // Where this rank's program is, for reports.
  void enter(Section section, uint64_t step);

  // This rank's state as a text for its peers, and what a peer sent. Throws Error(Fault::communication), which names
  // the peer, where that is no state.
  std::string state() const;
  void hear(int rank, const std::string& state);

  // What the peers have said since forget(), for a report: who was silent, and a line of each of the others.
  void forget() { heard_.clear(); }
  std::string answers() const;

  // What is to be done: nothing; ask all peers for their state; or the job is at its end.
  struct Verdict {
    bool ask = false;
    std::string warning;  // a line for people
    std::string failure;  // the report with which the job ends
  };
  Verdict look(SteadyTime now);
  // This rank slept until then, and its peers may have, too: what is under way has its whole time anew.
  void wake(SteadyTime awake_since);

  // The report where a neighbour's header differs from ours, or a transport call failed.
  std::string mismatch(const CollectiveId& mine, int other, const CollectiveId& theirs) const;
  std::string broken(const std::string& lane, const std::string& why) const;

 private:
  struct Lane {
    std::optional<CollectiveId> active;
    SteadyTime begun{};
    bool asked = false, warned = false;
    uint64_t done = 0;
  };
  struct State {
    std::map<std::string, uint64_t> lanes;  // collectives that it has come to
    std::string text;                       // where it is, for people
  };
  // False where `text` is none.
  static bool read(const std::string& text, State& state);
  // Who has not come to the collective, by what the peers said.
  std::string suspects(const CollectiveId& id) const;
  std::string history() const;
  std::string silent() const;
  std::string states() const;

  int rank_;
  std::vector<std::string> ranks_;
  GroupOptions limits_;
  std::map<std::string, Lane> lanes_;
  std::deque<std::string> last_;  // collectives, done or begun
  std::map<int, State> heard_;
  Section section_ = Section::setup;
  uint64_t step_ = 0;
};

}  // namespace dtrain
