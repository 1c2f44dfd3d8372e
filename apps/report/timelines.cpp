#include "apps/report/timelines.h"

#include <map>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/report/lines.h"

namespace dtrain::report {
namespace {

using Json = nlohmann::json;
using LaneKey = std::pair<int64_t, int64_t>;  // pid, tid

constexpr size_t kMostSpans = 1'000'000;
constexpr size_t kMostNames = 10'000;  // of one lane

class Reader {
 public:
  // False where `event` is none.
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
  // Numbers at the end, as of steps, make no names of their own.
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

}  // namespace

bool is_timeline(const std::string& path) { return first_line(path) == "["; }

void read_timeline(const std::string& path, RunData& run) {
  Reader reader;
  uint64_t others = 0;
  for_each_line(path, [&](const Line& line) {
    std::string text = line.text;
    if (text.empty() || text == "[" || text == "]") return;
    if (text.back() == ',') text.pop_back();
    if (!reader.take(Json::parse(text, nullptr, false))) ++others;
  });
  if (others > 0)
    run.notices.push_back(fmt::format("{}: {} lines are no events, as where a killed run has cut one", path, others));
  reader.finish(path, run);
}

}  // namespace dtrain::report
