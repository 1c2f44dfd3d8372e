#include "apps/report/timelines.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libdtrain/io/json_limits.h"
#include "libdtrain/io/text_lines.h"

namespace dtrain::report {
namespace {

using Json = nlohmann::json;
using LaneKey = std::pair<int64_t, int64_t>;  // pid, tid

constexpr size_t kMostSpans = 1'000'000;
constexpr size_t kMostNames = 10'000;  // of one lane
constexpr size_t kMostColumns = 100;   // of a rank's lane: wide enough for visible work and wait spans

class Reader {
 public:
  // False if `event` is not an event.
  bool take(const Json& event) {
    if (!event.is_object() || !event.contains("ph") || !event["ph"].is_string()) return false;
    const auto number = [&](const char* key) {
      return event.contains(key) && event[key].is_number() ? event[key].get<double>() : 0.0;
    };
    const auto id = [&](const char* key) {
      return event.contains(key) && event[key].is_number_integer() ? event[key].get<int64_t>() : int64_t{0};
    };
    const LaneKey key{id("pid"), id("tid")};
    const std::string name = event.value("name", Json()).is_string() ? event["name"].get<std::string>() : "";
    if (event["ph"] == "M") {
      const Json args = event.value("args", Json::object());
      if (!args.is_object() || !args.value("name", Json()).is_string()) return true;
      if (name == "process_name") processes_[key.first] = args["name"].get<std::string>();
      if (name == "thread_name") lanes_[key].name = args["name"].get<std::string>();
    } else if (event["ph"] == "X" && ++spans_ <= kMostSpans) {
      add(key, name, number("ts"), number("dur"));
    }
    return true;
  }

  void finish(const std::string& path, RunData& run) {
    for (auto& [key, lane] : lanes_) {
      if (lane.spans.empty()) continue;
      lane.process = path.substr(path.rfind('/') + 1) + ", ";
      lane.process += processes_.contains(key.first) ? processes_[key.first] : fmt::format("process {}", key.first);
      run.lanes.push_back(std::move(lane));
    }
    if (spans_ > kMostSpans)
      run.notices.push_back(
          fmt::format("{}: {} spans after the first million are left out", path, spans_ - kMostSpans));
  }

 private:
  // Strips trailing numbers, such as step numbers, from names.
  void add(const LaneKey& key, std::string name, double begin, double duration) {
    while (!name.empty() && (name.back() == ' ' || (name.back() >= '0' && name.back() <= '9'))) name.pop_back();
    Lane& lane = lanes_[key];
    auto& known = known_[key];
    if (known.size() >= kMostNames && !known.contains(name)) name = lane.names.front();
    const auto [at, is_new] = known.emplace(name, static_cast<uint32_t>(lane.names.size()));
    if (is_new) lane.names.push_back(name);
    lane.spans.push_back({begin, begin + duration, at->second});
  }

  std::map<int64_t, std::string> processes_;
  std::map<LaneKey, Lane> lanes_;
  std::map<LaneKey, std::map<std::string, uint32_t>> known_;
  size_t spans_ = 0;
};

// Curve of each rank, by rank.
std::map<uint64_t, std::vector<Point>> take_rank_curves(Curves& curves) {
  constexpr std::string_view kBegin = "rank_", kEnd = "_ms";
  std::map<uint64_t, std::vector<Point>> ranks;
  std::erase_if(curves, [&](auto& curve) {
    const std::string_view name = curve.first;
    if (!name.starts_with(kBegin) || !name.ends_with(kEnd) || name.size() <= kBegin.size() + kEnd.size()) return false;
    const char *first = name.data() + kBegin.size(), *last = name.data() + name.size() - kEnd.size();
    uint64_t rank = 0;
    const auto [end, problem] = std::from_chars(first, last, rank);
    if (problem != std::errc() || end != last) return false;
    ranks[rank] = std::move(curve.second);
    return true;
  });
  return ranks;
}

// For each point: the rank's work, and its wait for the slowest rank. `before`: step before the first point's interval.
std::vector<Span> spans_of_rank(const std::vector<Point>& points, const std::map<double, double>& slowest,
                                double before) {
  const size_t of_column = (slowest.size() + kMostColumns - 1) / kMostColumns;
  std::vector<Span> spans;
  double begin = 0, own = 0, known = 0, all = 0;
  size_t count = 0;
  auto point = points.begin();
  for (const auto& [step, longest] : slowest) {
    const double steps = 1e3 * (step - before);
    while (point != points.end() && point->step < step) ++point;
    if (point != points.end() && point->step == step && point->value >= 0) {
      own += point->value * steps;
      known += longest * steps;
    }
    all += longest * steps;
    before = step;
    if (++count % of_column != 0 && count != slowest.size()) continue;
    if (own > 0) spans.push_back({begin, begin + own, 0});
    if (own < known) spans.push_back({begin + own, begin + known, 1});
    begin += all;
    own = known = all = 0;
  }
  return spans;
}

}  // namespace

void take_rank_lanes(RunData& run) {
  const auto ranks = take_rank_curves(run.curves);
  std::map<double, double> slowest;  // by step
  for (const auto& [rank, points] : ranks)
    for (const Point& point : points)
      if (std::isfinite(point.value)) slowest[point.step] = std::max(slowest[point.step], point.value);
  // The first point's interval is assumed equal to the second's: a file may start within a run.
  double before = 0;
  if (slowest.size() > 1)
    before = std::max(0.0, 2 * slowest.begin()->first - std::next(slowest.begin())->first);
  else if (!slowest.empty())
    before = slowest.begin()->first - 1;
  for (const auto& [rank, points] : ranks)
    run.rank_lanes.push_back({fmt::format("rank {}", rank),
                              "steps",
                              {"own work", "wait for the slowest rank"},
                              spans_of_rank(points, slowest, before)});
}

bool is_timeline(const std::string& path) { return first_line(path) == "["; }

void read_timeline(const std::string& path, RunData& run) {
  Reader reader;
  uint64_t others = 0;
  for_each_line(path, [&](const TextLine& line) {
    std::string text = line.text;
    if (text.empty() || text == "[" || text == "]") return;
    if (text.back() == ',') text.pop_back();
    if (!reader.take(parse_json_line<Json>(text))) ++others;
  });
  if (others > 0)
    run.notices.push_back(fmt::format("{}: {} invalid lines, such as one truncated by a kill", path, others));
  reader.finish(path, run);
}

}  // namespace dtrain::report
