// Detection of crash loops: a job that is restarted by its launcher and keeps failing at one place ends for good. A job
// killed from outside continues and saves more often.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "dtrain/core/error.h"

namespace dtrain {

// The marker <train_dir>/starts.json counts starts since a checkpoint by how they ended: own error or crash (which
// leaves <train_dir>/crashed); out-of-memory kill, by the cgroup's counter or the kernel log; preemption or signal. A
// new checkpoint resets the counts. A start that finished no step counts only if it was OOM-killed, or failed after a
// checkpoint, which proves that the set-up works. The marker is written atomically; if it cannot be written, nothing is
// counted. Empty train_dir: no-op.
class CrashLoop {
 public:
  // `root`: parent of proc, sys and dev.
  CrashLoop(const std::string& train_dir, bool is_chief, std::filesystem::path root = "/");

  // The run continues from `step`. Returns the number of starts from there that were killed from outside before the
  // next checkpoint; 0 on ranks other than the chief. Throws Error if kStarts failed by themselves: Fault::resource if
  // they were OOM-killed, unless the memory limit has grown; if the last kStarts ended with errors at about the same
  // step, the last error's fault if it is Fault::data or Fault::numeric, else Fault::checkpoint.
  int begin(uint64_t step);
  // Path for CrashMarker; empty without train_dir.
  const std::string& crash_path() const { return crash_path_; }
  // Steps begin; `pids`: processes of the job on this host.
  void begin_attempt(const std::vector<int>& pids);
  // A step is done; on the chief the first step of a start counts it.
  void first_step_done();
  // Records the error that ended this start after step `at`, if the start counts. Any rank that sees train_dir may call
  // it. A communication error is attributed to another rank.
  void record(const Error& error, uint64_t at);
  // This start ends for a reason that is neither an error nor a kill.
  void leave_out();
  // A checkpoint covers all work done.
  void clear();

  static constexpr int kStarts = 3;

 private:
  struct Marker {
    uint64_t step = 0;
    int starts = 0;                         // that trained, or were OOM-killed
    int errors = 0, memory = 0, kills = 0;  // how they ended; errors: most recent ones at about one step
    uint64_t error_step = 0;
    int code = 0;  // exit code of the last error
    std::string error{};
    // The last start, while its end is unknown.
    bool open = false, trained = false;
    std::string group{};  // its cgroup, with the counters and limit at its start
    uint64_t oom_kills = 0, memory_limit = 0;
    uint64_t time = 0;  // on the kernel log's clock
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
