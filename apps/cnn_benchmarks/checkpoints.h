// The checkpoints of a run: what it goes on from, when it saves, and what its ranks agree on before it does.
#pragma once

#include <chrono>
#include <optional>

#include "apps/cnn_benchmarks/crash_loop.h"
#include "apps/cnn_benchmarks/steps.h"

namespace dtrain::cnn_benchmarks {

// The chief reads and writes; all ranks call the same, at the same steps.
class Checkpoints {
 public:
  Checkpoints(Session& session, Log& log)
      : session_(session), flags_(session.config.flags), log_(log), crash_loop_(flags_.train_dir, session.is_chief()) {}

  // Opens train_dir, if there is one, and brings model, optimiser and `state` of all ranks to where its checkpoint was
  // made, or to the initial parameters of the chief.
  void restore(TrainState& state, Steps& steps);
  // A step has been done, and what ended the run in disorder: a run that fails again and again behind one checkpoint
  // ends for good.
  void step_done() { crash_loop_.count(); }
  void failed(const Error& error) { crash_loop_.record(error); }
  bool has_directory() const { return !flags_.train_dir.empty(); }

  // Behind step `step`.
  bool save_is_due(uint64_t step);
  // The ranks' parameters are compared; a save does so too.
  bool verification_is_due(uint64_t step) const;
  void verify(uint64_t step);
  void save(TrainState& state, const Steps& steps);
  // Of the end of a run: complete on the disk on return.
  void save_last(TrainState& state, const Steps& steps);

 private:
  void open(TrainState& state, Steps& steps);

  Session& session_;
  const Flags& flags_;
  Log& log_;
  CrashLoop crash_loop_;
  std::optional<Checkpointer> files_;  // the chief's
  std::chrono::steady_clock::time_point saved_at_ = std::chrono::steady_clock::now();
};

}  // namespace dtrain::cnn_benchmarks
