// Restoring, sharing, agreeing, saving.
#include "apps/cnn_benchmarks/checkpoints.h"

#include <fmt/format.h>

#include "libdtrain/train/checkpoint_files.h"
#include "libdtrain/train/replicas.h"

namespace dtrain::cnn_benchmarks {

void Checkpoints::open(TrainState& state, Steps& steps) {
  CheckpointOptions options;
  options.train_dir = flags_.train_dir;
  options.keep = static_cast<int>(flags_.max_ckpts_to_keep);
  files_.emplace(session_.store, options, [this](const std::string& text) { log_.notice(text); });

  std::optional<RestoreReport> restored;
  if (flags_.resume == "never") {
    const auto latest = files_->latest();
    DT_CHECK(!latest, "--resume=never: ", *latest, " is there; choose another --train_dir or --resume=auto");
  } else if (flags_.resume == "auto") {
    restored = files_->restore_latest(state);
  } else {
    restored = files_->restore(flags_.resume, state);
  }
  if (!restored) return;
  for (const std::string& notice : restored->notices) log_.notice(notice);
  log_.line(fmt::format("Restored step {} from {}", restored->state.step, restored->path));
  if (!flags_.weights.empty()) log_.notice("--weights has no effect: the run goes on from its checkpoint");
  state.step = restored->state.step;
  state.cursor = restored->state.cursor;
  state.device = restored->state.device;
  steps.resume(state);
}

void Checkpoints::restore(TrainState& state, Steps& steps) {
  if (has_directory() && session_.is_chief()) {
    open(state, steps);
    crash_loop_.begin(state.step);
  }
  if (session_.group.size() == 1) return;
  const int chief = session_.config.ranks.chief;
  const std::string text = session_.group.broadcast(train_state_text(state), chief, "state of the chief");
  if (!session_.is_chief()) {
    const TrainState shared = train_state_from(text, "the state of the chief");
    state.step = shared.step;
    state.cursor = shared.cursor;
    crash_loop_.begin(state.step);
    steps.resume(shared);
  }
  broadcast_replica(session_.store, *session_.communicator, chief);
}

bool Checkpoints::save_is_due(uint64_t step) {
  if (!has_directory() || step >= session_.plan.total_steps) return false;
  if (flags_.save_model_steps) return step % static_cast<uint64_t>(*flags_.save_model_steps) == 0;
  if (flags_.save_model_secs <= 0) return false;
  // The chief's clock counts. Asking it in each step would cost many ranks more than it is worth.
  constexpr uint64_t kAskEvery = 10;
  if (session_.group.size() > 1 && step % kAskEvery != 0) return false;
  const auto age = std::chrono::steady_clock::now() - saved_at_;
  const bool due = session_.is_chief() && age >= std::chrono::seconds(flags_.save_model_secs);
  return session_.group.extremes(due ? 1 : 0, "time to save").second > 0;
}

bool Checkpoints::verification_is_due(uint64_t step) const {
  const auto every = static_cast<uint64_t>(flags_.verify_weights_every);
  return every > 0 && session_.group.size() > 1 && step % every == 0;
}

void Checkpoints::verify(uint64_t step) {
  const bool replicas = session_.group.size() > 1 && flags_.variable_update != "independent";
  if (replicas) check_replicas(session_.store, session_.group, step);
}

void Checkpoints::save(TrainState& state, const Steps& steps) {
  verify(state.step);  // as long as a step may last, and no longer: it waits for no disk
  session_.group.enter(Section::checkpoint, state.step);
  steps.describe(state);
  if (files_) files_->save(state);
  saved_at_ = std::chrono::steady_clock::now();
}

void Checkpoints::save_last(TrainState& state, const Steps& steps) {
  save(state, steps);
  if (files_ && !files_->wait()) throw Error(Fault::resource, "the last checkpoint could not be written; see above");
  crash_loop_.clear();
  session_.group.barrier("the last checkpoint");
}

}  // namespace dtrain::cnn_benchmarks
