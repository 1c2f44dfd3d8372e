// Crash loops: a job that its launcher starts again and again ends for good where it fails by itself at one place. One
// that is killed from outside goes on, and saves more often.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "libdtrain/core/error.h"

namespace dtrain {

// The marker <train_dir>/starts.json counts the starts since a checkpoint, by how they ended: with an error of their
// own or a crash, which leaves the file <train_dir>/crashed; killed for lack of memory by the count of their control
// group or by the kernel's log; or preempted or killed by a signal. Starts from another checkpoint are counted anew.
// One that never finished a step counts only where it was killed for memory, or failed after a checkpoint, which proves
// that the set-up works. The marker is written as a whole or not at all; where it cannot be, nothing is counted. An
// empty train_dir: nothing is done.
class CrashLoop {
 public:
  // `root`: where proc, sys and dev are.
  CrashLoop(const std::string& train_dir, bool is_chief, std::filesystem::path root = "/");

  // The run goes on from `step`. Returns how many starts from there were killed from outside before the next
  // checkpoint; 0 on other ranks than the chief. Throws Error where kStarts have failed by themselves: of
  // Fault::resource where they were killed for memory, unless more of it is allowed since; else, where the last kStarts
  // ended with errors at about the same step, of the last one's fault if this is Fault::data or Fault::numeric, and
  // Fault::checkpoint otherwise: the next is missing.
  int begin(uint64_t step);
  // Where a CrashMarker has to leave its file; empty without train_dir.
  const std::string& crash_path() const { return crash_path_; }
  // Steps are about to be made; `pids`: the processes of the job on this host.
  void begin_attempt(const std::vector<int>& pids);
  // A step is done; the first of a start counts, where this is the chief.
  void first_step_done();
  // Writes down the error that ended this start after step `at`, if the start counts. Any rank that sees train_dir may
  // do so. An error of communication is that of another rank.
  void record(const Error& error, uint64_t at);
  // This start ends for a reason that counts neither as an error nor as a kill.
  void leave_out();
  // There is a checkpoint of all that was done.
  void clear();

  static constexpr int kStarts = 3;

 private:
  struct Marker {
    uint64_t step = 0;
    int starts = 0;                         // that trained, or were killed for memory
    int errors = 0, memory = 0, kills = 0;  // how they ended; errors: the last ones at about one step
    uint64_t error_step = 0;
    int code = 0;  // of the last error
    std::string error{};
    // The last start, while nothing is known of its end.
    bool open = false, trained = false;
    std::string group{};  // its control group, what that had counted as it began, and allowed
    uint64_t oom_kills = 0, memory_limit = 0;
    uint64_t time = 0;  // of the kernel's log
    std::vector<int> pids{};
  };
  Marker read() const;
  void write() const;
  void classify_last_exit();
  void refuse_memory() const;
  void refuse_errors() const;

  std::string path_, crash_path_;
  bool is_chief_;
  std::filesystem::path root_;
  Marker marker_;
  bool counted_ = false;
};

}  // namespace dtrain
