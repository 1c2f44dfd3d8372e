// Traces that chrome://tracing and Perfetto show: lanes of named spans of time.
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

#include "libdtrain/io/atomic_file.h"

namespace dtrain {

struct TraceSpan {
  std::string lane{}, name{};
  std::chrono::steady_clock::time_point begin{}, end{};
  std::vector<std::pair<std::string, std::variant<std::string, double>>> args{};  // what is known of it
};

// A JSON array with an event on each line. A line is handed to the system whole and at once, so that of a program that
// is killed all but the end of the array is there; the format allows for that. Several threads may add at a time.
class TraceFile {
 public:
  using Clock = std::chrono::steady_clock;

  // Replaces what is there. Times in the file count from `origin`; `process` names all lanes together. Throws
  // Error(Fault::config) for a directory, Error(Fault::resource) where the file cannot be written.
  TraceFile(const std::string& path, const std::string& process, Clock::time_point origin = Clock::now());

  // The lanes of the file, in this order, before all that appear with a span. Not needed.
  void add_lane(const std::string& name);
  // Nothing is written once that has failed: see failure().
  void add(const TraceSpan& span) noexcept;
  // Ends the array; nothing is written from then on.
  void close();
  // Why nothing is written any more, once; empty where all is well, or has been told.
  std::string take_failure();

 private:
  size_t lane(const std::string& name);
  void write_event(const std::string& event);
  template <class Work>
  void guarded(const Work& work) noexcept;

  std::mutex mutex_;
  const Clock::time_point origin_;
  std::optional<OutputFile> file_;
  std::map<std::string, size_t> lanes_;  // from 1 on
  std::string failure_;
};

}  // namespace dtrain
