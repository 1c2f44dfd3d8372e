// Data of a run for reports.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace dtrain::report {

struct Point {
  double step = 0, value = 0;  // the value may be NaN: not finite
};

// Curves by metric name, each in ascending order of steps.
using Curves = std::map<std::string, std::vector<Point>>;

enum class EventKind : uint8_t { start, restart, end, stop, loss, failure, warning, notice };

// An event from a log; `loss`: a start without a preceding end.
struct LogEvent {
  EventKind kind = EventKind::notice;
  std::string file{};
  uint64_t line = 0;  // from 1 on
  uint64_t step = 0;  // the last step in the log before it
  std::string text{};
};

struct Checkpoint {
  uint64_t step = 0, bytes = 0;
  bool complete = false;  // all files exist with the sizes in the manifest
  std::string written{};  // in UTC
};

struct Span {
  double begin = 0, end = 0;  // microseconds
  uint32_t name = 0;          // an index into Lane::names
};

struct Lane {
  std::string process{}, name{};
  std::vector<std::string> names{};
  std::vector<Span> spans{};
};

// An image with its predictions.
struct Sample {
  std::string source{};  // a data: URI; empty if the image is not available
  int width = 0, height = 0;
  std::string name{};
  std::string verdict{};             // "F1 0.67", "class 3, 91 %"
  std::vector<std::string> lines{};  // more about it
};

struct Samples {
  std::string title{};
  std::vector<std::string> notes{};
  std::vector<Sample> worst{}, best{};
  std::vector<std::vector<std::string>> classes{};  // rows of name, objects, box AP, mask AP
};

struct RunData {
  std::string name{}, path{};
  Curves curves{};
  uint64_t not_finite = 0;  // values
  std::vector<LogEvent> events{};
  std::map<std::string, std::string> settings{};
  std::vector<Checkpoint> checkpoints{};
  std::vector<Lane> lanes{};       // from --timeline files
  std::vector<Lane> rank_lanes{};  // per rank, from the metrics
  std::vector<Samples> samples{};
  std::vector<std::string> notices{};  // notices about unreadable files
};

}  // namespace dtrain::report
