// Watchdog: state, timeouts and failure reports of collectives on this rank and its peers. Passive: the communication
// thread polls it and transmits its messages.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "dtrain/distributed/group.h"
#include "libdtrain/distributed/awake.h"

namespace dtrain {

// Identity of a collective. Everything except rank-local times must agree between ranks.
struct CollectiveId {
  std::string lane;       // collectives of a lane are sequential
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
  // `ranks`: names for reports.
  Watchdog(int rank, std::vector<std::string> ranks, const GroupOptions& limits);

  // A collective begins in a lane; or the last one begun is done.
  void begin(const CollectiveId& id, SteadyTime now);
  void end(const std::string& lane, SteadyTime now);
  // Current section of this rank's program, for reports.
  void enter(Section section, uint64_t step);

  // Serialised state of this rank for its peers; and a peer's state. Throws Error(Fault::communication), naming the
  // peer, for malformed states.
  std::string state() const;
  void hear(int rank, const std::string& state);

  // Report of peers' answers since forget(): silent ranks, and one line per answer.
  void forget() { heard_.clear(); }
  std::string answers() const;

  // Action: none; query all peers' states; or end the job.
  struct Verdict {
    bool ask = false;
    std::string warning;  // one line
    std::string failure;  // report with which the job ends
  };
  Verdict look(SteadyTime now);
  // This rank was suspended until then, and its peers possibly too: timeouts of collectives in progress restart.
  void wake(SteadyTime awake_since);

  // Report if a neighbour's header differs from ours, or a transport call failed.
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
    std::map<std::string, uint64_t> lanes;  // collectives begun, per lane
    std::string text;                       // current section, for reports
  };
  // False for malformed `text`.
  static bool read(const std::string& text, State& state);
  // Ranks that have not reached the collective, by the peers' answers.
  std::string suspects(const CollectiveId& id) const;
  std::string history() const;
  std::string silent() const;
  std::string states() const;

  int rank_;
  std::vector<std::string> ranks_;
  GroupOptions limits_;
  std::map<std::string, Lane> lanes_;
  std::deque<std::string> last_;  // recent collectives
  std::map<int, State> heard_;
  Section section_ = Section::setup;
  uint64_t step_ = 0;
};

}  // namespace dtrain
