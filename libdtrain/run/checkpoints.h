// The checkpoints of a run: what it goes on from, when it saves, and what its ranks agree on before it does.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "libdtrain/io/file_system.h"
#include "libdtrain/run/crash_loop.h"
#include "libdtrain/run/crash_marker.h"
#include "libdtrain/run/observer.h"
#include "libdtrain/run/run.h"

namespace dtrain {

// The chief reads and writes, or with RunOptions::local_checkpoints a rank of each host; all ranks call the same, after
// the same steps.
class RunCheckpoints {
 public:
  RunCheckpoints(const RunOptions& options, Trainer& trainer, Group& group, Observer& observer,
                 FileSystem& disk = system_files());

  // Opens train_dir, if there is one, and brings parameters, optimizer state and `state` of all ranks to where its
  // checkpoint was made, or to the initial parameters of the chief. Returns the checkpoint's path on the chief, nothing
  // for a fresh start. `state` has the identity and the settings of this run.
  std::string restore(TrainState& state);
  bool has_directory() const { return !options_.train_dir.empty(); }

  // Steps are about to be made, one has been done, and the exception that ended the run after step `at`: a run that
  // fails by itself again and again at one place ends for good. failed() waits for a save that is under way; where the
  // disk does not answer in time, it ends the job with the error.
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
  // The same, but leaves it out, with a notice, where the earlier one takes long. Collective.
  void save_or_skip(const TrainState& state);
  // The last save of a run: complete on the disk on return.
  void save_last(const TrainState& state);
  // The checkpoint of `step` is the best, or may turn out to be, see Checkpointer. Of ranks that know it.
  void keep_best(uint64_t step);
  void keep_candidate(uint64_t step);
  // Passes on what the writer has finished or warned about since the last call. Ends the job where a save takes longer
  // than RunOptions::checkpoint_timeout.
  void report();

 private:
  bool is_chief() const { return group_.rank() == options_.chief; }
  // Of ranks that write.
  void open();
  std::optional<RestoreReport> load(const TrainState& state);
  // The same of those of several hosts. Collective.
  std::optional<RestoreReport> load_common(const TrainState& state);
  // Takes over what was restored, if anything was, and returns its path.
  std::string adopt(const std::optional<RestoreReport>& restored, TrainState& state);
  // How many starts from `step` were killed before the next checkpoint. Saves are due the sooner for each of them.
  void save_sooner(int kills, uint64_t step);
  // Waits until no rank writes a checkpoint any more, so many seconds at most, and says whether that is so. The ranks
  // that write tell the others each second that they do: a slow disk does not count as a lost rank. Ends the job where
  // one save takes longer than RunOptions::checkpoint_timeout. Collective.
  bool wait_for_saves(double patience);
  // Of a rank whose save is under way: ends the job where that takes longer than RunOptions::checkpoint_timeout.
  void check_save_timeout();
  // Says once of a save that the disk is slow.
  void tell_of_slow_save();
  std::string describe_save() const;
  // Changes the marker of crash loops before the process ends, on a disk that may not answer.
  void mark_briefly(const std::function<void(CrashLoop& loop)>& change) const;
  [[noreturn]] void fail(const std::string& report, Fault fault);
  // A line about this rank's disk: in the log of the chief, on stderr of other ranks, whose log nobody sees.
  void tell(const std::string& text);
  void write(const TrainState& state);
  // More time than a save takes has passed since the last one. Collective.
  bool save_pays();
  // Since one was made or left out.
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
  Cadence saving_;  // when saves are due
  bool sooner_ = false;
  std::mutex mutex_;
  std::vector<std::string> warnings_;  // from the writer's thread
  std::optional<uint64_t> reported_;   // the step of the last save that was reported to the observers
  double save_seconds_ = 0;            // what that took
  std::chrono::steady_clock::time_point saved_at_ = std::chrono::steady_clock::now(), skipped_at_ = saved_at_;
  uint64_t saved_step_ = 0;            // of the last save that was begun
  uint64_t skipped_ = 0;               // saves in all
  bool skipping_ = false;              // the last one that was due
  bool told_ = false;                  // that the one under way is slow
  std::optional<Checkpointer> files_;  // of ranks that write; its writer uses what is above
};

}  // namespace dtrain
