// Timeouts, suspects and reports.
#include "libdtrain/distributed/watchdog.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "dtrain/core/error.h"

namespace dtrain {
namespace {

constexpr size_t kHistory = 8;           // collectives listed in a report
constexpr size_t kStateBytes = 8 << 10;  // limit of a peer's state

double seconds(SteadyTime from, SteadyTime to) { return std::chrono::duration<double>(to - from).count(); }

}  // namespace

std::string name_of(Section section, uint64_t step) {
  switch (section) {
    case Section::setup:
      return "the set-up";
    case Section::step:
      return fmt::format("step {}", step);
    case Section::evaluation:
      return fmt::format("the evaluation after step {}", step);
    case Section::checkpoint:
      return fmt::format("the checkpoint after step {}", step);
  }
  return "";
}

std::string CollectiveId::to_string() const {
  return fmt::format("{} #{} '{}', {} bytes, of {}", lane, sequence, what, bytes, name_of(section, step));
}

Watchdog::Watchdog(int rank, std::vector<std::string> ranks, const GroupOptions& limits)
    : rank_(rank), ranks_(std::move(ranks)), limits_(limits) {}

void Watchdog::begin(const CollectiveId& id, SteadyTime now) {
  lanes_[id.lane] = {.active = id, .begun = now, .asked = false, .warned = false, .done = id.sequence - 1};
  last_.push_back(id.to_string());
  if (last_.size() > kHistory) last_.pop_front();
}

void Watchdog::end(const std::string& lane, SteadyTime) {
  Lane& one = lanes_[lane];
  if (one.active) one.done = one.active->sequence;
  one.active.reset();
}

void Watchdog::enter(Section section, uint64_t step) {
  section_ = section;
  step_ = step;
}

// One line per lane, "<lane>\t<collectives done>", then the current section and the recent collectives.
std::string Watchdog::state() const {
  std::string text;
  for (const auto& [lane, one] : lanes_)
    text += fmt::format("{}\t{}\n", lane, one.active ? one.active->sequence : one.done);
  return text + fmt::format("\nin {}; its last collectives: {}", name_of(section_, step_), history());
}

std::string Watchdog::history() const { return last_.empty() ? "none" : fmt::format("{}", fmt::join(last_, "; ")); }

void Watchdog::hear(int rank, const std::string& state) {
  State heard;
  if (!read(state, heard))
    throw Error(Fault::communication,
                fmt::format("{} sent a malformed watchdog state", ranks_[static_cast<size_t>(rank)]));
  heard_[rank] = std::move(heard);
}

bool Watchdog::read(const std::string& text, State& state) {
  const size_t end = text.find("\n\n");
  if (text.size() > kStateBytes || (end == std::string::npos && !text.starts_with('\n'))) return false;
  const std::string lanes = text.substr(0, text.starts_with('\n') ? 0 : end + 1);
  for (size_t at = 0; at < lanes.size();) {
    const size_t tab = lanes.find('\t', at), line = lanes.find('\n', at);
    uint64_t reached = 0;
    if (tab >= line) return false;
    const auto [stop, error] = std::from_chars(lanes.data() + tab + 1, lanes.data() + line, reached);
    if (error != std::errc{} || stop != lanes.data() + line) return false;
    state.lanes[lanes.substr(at, tab - at)] = reached;
    at = line + 1;
  }
  state.text = text.substr(lanes.size() + 1);
  return true;
}

Watchdog::Verdict Watchdog::look(SteadyTime now) {
  Verdict verdict;
  for (auto& [name, lane] : lanes_) {
    if (!lane.active) continue;
    const double limit = limits_.limit_of(lane.active->section), waited = seconds(lane.begun, now);
    // Peers are queried before the warning and again before the end, with a second to answer.
    const double warn_after = std::min(limit / 4, 10.0), ask_before = std::min(1.0, limit / 10);
    if (waited > limit) {
      verdict.failure =
          fmt::format("{} has waited {:.0f} s for {}: {}; {} was in {}; its last collectives: {}",
                      ranks_[static_cast<size_t>(rank_)], waited, lane.active->to_string(), suspects(*lane.active),
                      ranks_[static_cast<size_t>(rank_)], name_of(section_, step_), history()) +
          states();
      return verdict;
    }
    const bool due = waited > (lane.warned ? limit - ask_before : warn_after);
    if (due && !lane.asked) {
      lane.asked = verdict.ask = true;
      heard_.clear();
    }
    if (!lane.warned && waited > warn_after + ask_before) {
      lane.warned = true;
      lane.asked = false;
      verdict.warning = fmt::format("waiting for {} since {:.1f} s (limit {:.0f} s): {}", lane.active->to_string(),
                                    waited, limit, suspects(*lane.active));
    }
  }
  return verdict;
}

void Watchdog::wake(SteadyTime awake_since) {
  for (auto& [name, lane] : lanes_) {
    if (!lane.active || lane.begun >= awake_since) continue;
    lane.begun = awake_since;
    lane.asked = lane.warned = false;
  }
}

std::string Watchdog::silent() const {
  std::vector<std::string> names;
  for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank)
    if (rank != rank_ && !heard_.contains(rank)) names.push_back(ranks_[static_cast<size_t>(rank)]);
  return names.empty() ? "" : fmt::format("{} did not answer: stopped, or cut off", fmt::join(names, ", "));
}

std::string Watchdog::states() const {
  std::string text;
  for (const auto& [rank, state] : heard_)
    text += fmt::format("\n  {}: {}", ranks_[static_cast<size_t>(rank)], state.text);
  return text;
}

std::string Watchdog::answers() const {
  const std::string missing = silent();
  return (missing.empty() ? "all others answer: one is out of step, or the network drops messages" : missing) +
         states();
}

std::string Watchdog::suspects(const CollectiveId& id) const {
  std::vector<std::string> behind;
  for (const auto& [rank, state] : heard_) {
    const auto lane = state.lanes.find(id.lane);
    if (lane == state.lanes.end() || lane->second < id.sequence) behind.push_back(ranks_[static_cast<size_t>(rank)]);
  }
  std::string text = silent();
  if (!behind.empty()) text += fmt::format("{}{} did not reach it", text.empty() ? "" : "; ", fmt::join(behind, ", "));
  return text.empty() ? "all ranks have begun it: the network between them drops messages" : text;
}

std::string Watchdog::mismatch(const CollectiveId& mine, int other, const CollectiveId& theirs) const {
  return fmt::format("ranks are out of step: {} does {}, {} does {}; last collectives here: {}",
                     ranks_[static_cast<size_t>(rank_)], mine.to_string(), ranks_[static_cast<size_t>(other)],
                     theirs.to_string(), history());
}

std::string Watchdog::broken(const std::string& lane, const std::string& why) const {
  const auto found = lanes_.find(lane);
  const bool active = found != lanes_.end() && found->second.active;
  return fmt::format("{} in {}: {}; last collectives here: {}", ranks_[static_cast<size_t>(rank_)],
                     active ? found->second.active->to_string() : name_of(section_, step_), why, history());
}

}  // namespace dtrain
