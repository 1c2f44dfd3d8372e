// TraceFile: timelines for chrome://tracing and Perfetto.
// Format: "Trace Event Format", JSON array,
// https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "dtrain/io/atomic_file.h"

namespace dtrain {

struct TraceSpan {
  std::string lane{}, name{};
  std::chrono::steady_clock::time_point begin{}, end{};
  std::vector<std::pair<std::string, std::variant<std::string, double>>> args{};  // attributes
};

// JSON array with one event per line. Lines are written whole and unbuffered: after a kill only the closing bracket is
// missing, which the format allows. Thread-safe.
class TraceFile {
 public:
  using Clock = std::chrono::steady_clock;

  // Replaces an existing file. Times are relative to `origin`; `process` is the name of the process track. Throws
  // Error(Fault::config) for a directory, Error(Fault::resource) if the file cannot be written.
  TraceFile(const std::string& path, const std::string& process, Clock::time_point origin = Clock::now());

  // Optional: fixes the order of lanes before their first spans.
  void add_lane(const std::string& name);
  // After a failure nothing is written: see take_failure().
  void add(const TraceSpan& span) noexcept;
  // Ends the array: the last call.
  void close();
  // Returns the reason of a failure, once; empty if there is none or it was already returned.
  std::string take_failure();

 private:
  size_t lane(const std::string& name);
  void write_event(const std::string& event);
  template <class Work>
  void guarded(const Work& work) noexcept;

  std::mutex mutex_;
  const Clock::time_point origin_;
  std::optional<OutputFile> file_;
  std::map<std::string, size_t> lanes_;  // from 1
  std::string failure_;
};

}  // namespace dtrain
