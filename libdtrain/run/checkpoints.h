// RunCheckpoints: restore, save, and their coordination among the ranks of a run.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "dtrain/io/file_system.h"
#include "dtrain/run/observer.h"
#include "dtrain/run/run.h"
#include "libdtrain/run/crash_loop.h"
#include "libdtrain/run/crash_marker.h"

namespace dtrain {

// The chief reads and writes, or one rank per host with RunOptions::local_checkpoints. All ranks make the same calls
// after the same steps.
class RunCheckpoints {
 public:
  RunCheckpoints(const RunOptions& options, Trainer& trainer, Group& group, Observer& observer,
                 FileSystem& disk = system_files());

  // Opens train_dir, if any, and restores parameters, optimiser state and `state` on all ranks from its checkpoint, or
  // broadcasts the chief's initial parameters. Returns the checkpoint's path on the chief, empty for a fresh start.
  // `state` holds identity and settings of this run.
  std::string restore(TrainState& state);
  bool has_directory() const { return !options_.train_dir.empty(); }

  // Crash-loop bookkeeping: before the first step, after a step, and for the exception that ended the run after step
  // `at`. A run that keeps failing at one place ends for good. failed() waits for a save in progress; if the disk does
  // not respond in time, it ends the job with the error.
  void begin_steps();
  void step_done() { crash_loop_.first_step_done(); }
  void failed(const std::exception& error, uint64_t at);

  // After step `step`.
  bool save_is_due(uint64_t step);
  bool verification_is_due(uint64_t step) const { return group_.size() > 1 && options_.cadence.verifies(step); }
  // Compares the ranks' parameters.
  void verify(uint64_t step);
  // Verifies, then saves; waits for an earlier save. Collective.
  void save(const TrainState& state);
  // As save(), but skips it, with a notice, while an earlier save is slow. Collective.
  void save_or_skip(const TrainState& state);
  // Final save of a run: complete on disk on return.
  void save_last(const TrainState& state);
  // Protects the checkpoint of `step` as best or as candidate, see Checkpointer. On ranks that know it.
  void keep_best(uint64_t step);
  void keep_candidate(uint64_t step);
  // Forwards results and warnings of the writer since the last call. Ends the job if a save exceeds
  // RunOptions::checkpoint_timeout.
  void report();

 private:
  bool is_chief() const { return group_.rank() == options_.chief; }
  // On writing ranks.
  void open();
  std::optional<RestoreReport> load(const TrainState& state);
  // With checkpoints on several hosts. Collective.
  std::optional<RestoreReport> load_common(const TrainState& state);
  // Applies a restored checkpoint, if any, and returns its path.
  std::string adopt(const std::optional<RestoreReport>& restored, TrainState& state);
  // Makes saves more frequent, by the number of starts from `step` that were killed before the next checkpoint.
  void save_sooner(int kills, uint64_t step);
  // Waits until no rank is writing a checkpoint, at most `patience` seconds; returns whether that is so. Writing ranks
  // send a heartbeat each second: a slow disk does not count as a lost rank. Ends the job if a save exceeds
  // RunOptions::checkpoint_timeout. Collective.
  bool wait_for_saves(double patience);
  // On a rank with a save in progress: ends the job if it exceeds RunOptions::checkpoint_timeout.
  void check_save_timeout();
  // Reports a slow disk once per save.
  void tell_of_slow_save();
  std::string describe_save() const;
  // For messages.
  const char* storage() const { return options_.publish ? "the disk or the object storage" : "the disk"; }
  // Updates the crash-loop marker before the process ends, on a disk that may not respond.
  void mark_briefly(const std::function<void(CrashLoop& loop)>& change) const;
  [[noreturn]] void fail(const std::string& report, Fault fault);
  // Message about this rank's disk: to the log on the chief, to stderr on other ranks, which have no log.
  void tell(const std::string& text);
  void write(const TrainState& state);
  // Whether more time than a save takes has passed since the last one. Collective.
  bool save_pays();
  // Since the last save, made or skipped.
  std::chrono::duration<double> since_save() const {
    return std::chrono::steady_clock::now() - std::max(saved_at_, skipped_at_);
  }
  void warn(const std::string& text);

  const RunOptions& options_;
  Trainer& trainer_;
  Group& group_;
  Observer& observer_;
  FileSystem& disk_;
  CrashLoop crash_loop_;
  std::optional<CrashMarker> crash_marker_;
  Cadence saving_;  // cadence of saves
  bool sooner_ = false;
  std::mutex mutex_;
  std::vector<std::string> warnings_;  // from the writer thread
  std::optional<uint64_t> reported_;   // step of the last save reported to observers
  double save_seconds_ = 0;            // duration of that save
  std::chrono::steady_clock::time_point saved_at_ = std::chrono::steady_clock::now(), skipped_at_ = saved_at_;
  uint64_t saved_step_ = 0;            // of the last save begun
  uint64_t skipped_ = 0;               // skipped saves in total
  bool skipping_ = false;              // whether the last due save was skipped
  bool told_ = false;                  // the save in progress was reported as slow
  std::optional<Checkpointer> files_;  // on writing ranks; its writer uses the members above
};

}  // namespace dtrain
