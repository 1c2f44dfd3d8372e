// Crash loops: a job that its launcher starts again and again, and that fails before each next checkpoint, ends for
// good.
#pragma once

#include <cstdint>
#include <string>

#include "libdtrain/core/error.h"

namespace dtrain {

// The marker <train_dir>/starts.json counts starts that trained, by the step they went on from: one from another step
// counts anew, one that never finished a step does not count. It is written as a whole or not at all; where it cannot
// be, nothing is counted. An empty train_dir: nothing is done.
class CrashLoop {
 public:
  CrashLoop(const std::string& train_dir, bool is_chief);

  // The run goes on from `step`. Throws Error where kStarts in a row have trained from there in vain. Its fault is that
  // of the last start if this was Fault::data or Fault::numeric, and Fault::checkpoint otherwise: the next is missing.
  void begin(uint64_t step);
  // A step is done; the first of a start counts, where this is the chief.
  void count();
  // Writes down the error that ended this start, if the start counts. Any rank that sees train_dir may do so.
  void record(const Error& error);
  // There is a checkpoint of all that was done.
  void clear();

  static constexpr int kStarts = 3;

 private:
  struct Marker {
    uint64_t step = 0;
    int starts = 0;
    int code = 0;  // the code of the last failure known
    std::string error;
  };
  Marker read() const;
  void write(const Marker& marker) const;

  std::string path_;
  bool is_chief_;
  uint64_t step_ = 0;
  bool counted_ = false;
};

}  // namespace dtrain
