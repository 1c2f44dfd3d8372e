// Restore, broadcast, coordination and saves.
#include "libdtrain/run/checkpoints.h"

#include <algorithm>
#include <future>
#include <limits>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "dtrain/train/replicas.h"
#include "libdtrain/distributed/awake.h"
#include "libdtrain/distributed/read_texts.h"
#include "libdtrain/run/common_step.h"
#include "libdtrain/train/checkpoint_files.h"

namespace dtrain {
namespace {

// Interval of heartbeats while a rank waits for its disk.
constexpr double kHeartbeatSeconds = 1;

}  // namespace

RunCheckpoints::RunCheckpoints(const RunOptions& options, Trainer& trainer, Group& group, Observer& observer,
                               FileSystem& disk)
    : options_(options),
      trainer_(trainer),
      group_(group),
      observer_(observer),
      disk_(disk),
      crash_loop_(options.train_dir, group.rank() == options.chief),
      saving_(options.cadence) {}

void RunCheckpoints::warn(const std::string& text) {
  const std::lock_guard lock(mutex_);
  warnings_.push_back(text);
}

void RunCheckpoints::report() {
  std::vector<std::string> warnings;
  {
    const std::lock_guard lock(mutex_);
    warnings.swap(warnings_);
  }
  for (std::string& text : warnings) observer_.noticed({std::move(text)});
  if (!files_) return;
  if (files_->busy()) check_save_timeout();
  const std::optional<SaveReport> last = files_->finished();
  if (!last || reported_ == last->step) return;
  reported_ = last->step;
  save_seconds_ = last->seconds;
  observer_.saved({*last});
}

void RunCheckpoints::open() {
  CheckpointOptions options;
  options.train_dir = options_.train_dir;
  options.keep = options_.keep;
  options.publish = options_.publish;
  options.average = trainer_.optimizer().average();
  files_.emplace(
      trainer_.store(), options, [this](const std::string& text) { warn(text); }, disk_);
  report();
}

std::optional<RestoreReport> RunCheckpoints::load(const TrainState& state) {
  if (!options_.resume_from.empty()) return files_->restore(options_.resume_from, state);
  if (options_.resume == Resume::newest) return files_->restore_latest(state);
  const auto latest = files_->latest();
  DT_CHECK(!latest, "the run is to start afresh, and ", *latest,
           " is there; choose another train_dir, or resume from it");
  return std::nullopt;
}

std::optional<RestoreReport> RunCheckpoints::load_common(const TrainState& state) {
  const std::string directory = options_.train_dir + "/checkpoints";
  std::optional<std::vector<uint64_t>> own;
  if (files_) {
    own = list_checkpoints(directory);
    for (const uint64_t step : *own) require_known_format(checkpoint_path(directory, step));
    std::erase_if(*own, [&](uint64_t step) { return !looks_complete(checkpoint_path(directory, step)); });
  }
  const auto step = newest_common_step(group_, own, [&](uint64_t candidate) {
    try {
      verify_checkpoint(checkpoint_path(directory, candidate));
      return true;
    } catch (const Error& error) {
      warn(concat("skipped a damaged checkpoint: ", error.what()));
      return false;
    }
  });
  if (!files_) return std::nullopt;
  if (!step) return files_->restore_latest(state);  // nullopt, or an error if none is usable
  return files_->restore(checkpoint_path(directory, *step), state);
}

std::string RunCheckpoints::adopt(const std::optional<RestoreReport>& restored, TrainState& state) {
  if (restored) reported_ = restored->state.step;
  report();
  if (!restored) return {};
  for (const std::string& notice : restored->notices) observer_.noticed({notice});
  state.step = restored->state.step;
  state.cursor = restored->state.cursor;
  state.device = restored->state.device;
  return restored->path;
}

std::string RunCheckpoints::restore(TrainState& state) {
  std::string path;
  trainer_.optimizer().restart_average();  // weights may have been loaded after its construction
  const bool writes = has_directory() && writes_checkpoints(group_, options_.chief, options_.local_checkpoints);
  if (writes) open();
  if (has_directory() && options_.local_checkpoints && options_.resume == Resume::newest &&
      options_.resume_from.empty())
    path = adopt(load_common(state), state);
  else if (writes)
    path = adopt(load(state), state);
  if (group_.size() > 1) {
    const std::string text = group_.broadcast(train_state_text(state), options_.chief, "state of the chief");
    read_text(group_, options_.chief, text, "state of the chief", [&](const std::string& told) {
      const TrainState shared = train_state_from(told, "the state of the chief");
      state.step = shared.step;
      state.cursor = shared.cursor;
      state.device = shared.device;
    });
  }
  const int64_t kills = has_directory() ? group_.extremes(crash_loop_.begin(state.step), "kills").second : 0;
  if (kills > 0) save_sooner(static_cast<int>(std::min<int64_t>(kills, 1000)), state.step);
  trainer_.resume(state.step, state.device);
  if (group_.size() > 1)
    broadcast_replica(trainer_.store(), *trainer_.options().communicator, options_.chief,
                      trainer_.optimizer().average());
  return path;
}

void RunCheckpoints::begin_steps() {
  std::vector<int> pids;  // of other processes
  const std::vector<Place>& places = group_.places();
  for (const Place& place : places)
    if (place.node == places[static_cast<size_t>(group_.rank())].node) pids.push_back(place.pid);
  if (has_directory() && (is_chief() || !options_.local_checkpoints)) crash_marker_.emplace(crash_loop_.crash_path());
  crash_loop_.begin_attempt(pids);
  awake_since();  // starts measuring save durations
}

void RunCheckpoints::save_sooner(int kills, uint64_t step) {
  const Cadence& usual = options_.cadence;
  saving_ = usual.saving_sooner(kills);
  sooner_ = true;
  if (!is_chief()) return;
  const std::string change =
      saving_.save_every_steps == 0
          ? fmt::format("every {:.3g} s in place of {:.3g} s", saving_.save_every_seconds, usual.save_every_seconds)
      : usual.save_every_steps == 0
          ? fmt::format("every {} steps and at its end", saving_.save_every_steps)
          : fmt::format("every {} steps in place of {}", saving_.save_every_steps, usual.save_every_steps);
  observer_.noticed(
      {fmt::format("{} start{} from step {} {} killed before the next checkpoint: this one saves {}, but "
                   "no more often than a save takes",
                   kills, kills > 1 ? "s" : "", step, kills > 1 ? "were" : "was", change)});
}

bool RunCheckpoints::save_pays() {
  const bool costly = is_chief() && (files_->busy() || since_save().count() < save_seconds_);
  return group_.extremes(costly ? 1 : 0, "cost of a save").second == 0;
}

bool RunCheckpoints::save_is_due(uint64_t step) {
  if (!has_directory() || step >= saving_.total_steps) return false;
  if (saving_.save_every_steps > 0) return step % saving_.save_every_steps == 0 && (!sooner_ || save_pays());
  if (saving_.save_every_seconds <= 0) return false;
  // The chief's clock decides. Asking it in every step would be too expensive with many ranks.
  constexpr uint64_t kAskEvery = 10;
  if (group_.size() > 1 && !sooner_ && step % kAskEvery != 0) return false;
  const bool due =
      is_chief() && since_save().count() >= std::max(saving_.save_every_seconds, sooner_ ? save_seconds_ : 0);
  return group_.extremes(due ? 1 : 0, "time to save").second > 0;
}

void RunCheckpoints::verify(uint64_t step) {
  const bool replicas = group_.size() > 1 && !trainer_.options().independent;
  if (replicas) check_replicas(trainer_.store(), group_, step);
}

void RunCheckpoints::tell(const std::string& text) {
  if (is_chief())
    observer_.noticed({text});
  else
    group_.tell(text);
}

void RunCheckpoints::fail(const std::string& report, Fault fault) {
  group_.fail((group_.size() > 1 ? group_.name(group_.rank()) + ": " : "") + report, fault);
}

void RunCheckpoints::mark_briefly(const std::function<void(CrashLoop& loop)>& change) const {
  constexpr std::chrono::seconds kPatience{2};
  auto done = std::make_shared<std::promise<void>>();
  try {
    std::thread([loop = crash_loop_, change, done]() mutable {
      change(loop);
      done->set_value();
    }).detach();
  } catch (const std::system_error&) {  // no thread available: the start counts as killed
    return;
  }
  done->get_future().wait_for(kPatience);
}

void RunCheckpoints::failed(const std::exception& error, uint64_t at) {
  const auto* const known = dynamic_cast<const Error*>(&error);
  const Error failure(known ? known->fault() : Fault::resource, error.what());
  // Waits for the save in progress, from which the next start continues; peers must be told before they time out.
  const double limit = options_.checkpoint_timeout, patience = group_.size() > 1 ? group_.limit() / 2 : limit;
  const auto begun = std::chrono::steady_clock::now();
  for (bool told = false; files_ && files_->busy(kHeartbeatSeconds);) {
    if (!std::exchange(told, true))
      tell(fmt::format("the checkpoint of step {} is waited for before the run ends: {}", saved_step_, failure.what()));
    if (waited_since(begun) < patience && waited_since(saved_at_) < limit) continue;
    mark_briefly([failure, at](CrashLoop& loop) { loop.record(failure, at); });
    fail(failure.what(), failure.fault());
  }
  crash_loop_.record(failure, at);
}

std::string RunCheckpoints::describe_save() const {
  return fmt::format("the checkpoint of step {} has been under way to {} for {:.1f} s", saved_step_, options_.train_dir,
                     waited_since(saved_at_));
}

void RunCheckpoints::check_save_timeout() {
  const double limit = options_.checkpoint_timeout;
  if (waited_since(saved_at_) <= limit) return;
  mark_briefly([](CrashLoop& loop) { loop.leave_out(); });
  fail(fmt::format("{}, limit {:g} s: {} is too slow, or does not answer", describe_save(), limit, storage()),
       Fault::resource);
}

void RunCheckpoints::tell_of_slow_save() {
  const double limit = options_.checkpoint_timeout;
  if (told_ || waited_since(saved_at_) < std::min(limit / 4, 10.0)) return;
  told_ = true;
  tell(fmt::format("{} (limit {:g} s): {} is slow", describe_save(), limit, storage()));
}

bool RunCheckpoints::wait_for_saves(double patience) {
  enum : int { kFree, kBusy, kTooLong };
  // A rank that exceeds the limit ends itself; the slack is for ranks that do not.
  const double limit = options_.checkpoint_timeout, most = limit + std::min(5.0, limit / 2);
  const double beat = std::min({kHeartbeatSeconds, patience, group_.limit() / 4});
  const auto begun = std::chrono::steady_clock::now();
  while (true) {
    int mine = kFree, all = kFree, busy = 0;
    if (files_ && files_->busy(beat)) {
      check_save_timeout();
      tell_of_slow_save();
      mine = waited_since(begun) < patience ? kBusy : kTooLong;
    }
    read_texts(group_, std::to_string(mine), "disks of the checkpoints", [&](int rank, const std::string& text) {
      const int theirs = number_in<int>(text);
      DT_CHECK(theirs >= kFree && theirs <= kTooLong, theirs);
      if (theirs == kBusy) busy = rank;
      all = std::max(all, theirs);
    });
    if (all != kBusy) return all == kFree;
    if (waited_since(begun) > most)
      group_.fail(fmt::format("{} has been writing a checkpoint for {:.1f} s, limit {:g} s", group_.name(busy),
                              waited_since(begun), limit));
  }
}

void RunCheckpoints::write(const TrainState& state) {
  saved_at_ = std::chrono::steady_clock::now();
  saved_step_ = state.step;
  skipping_ = told_ = false;
  if (!files_) return;
  report();
  files_->save(state);
}

void RunCheckpoints::save(const TrainState& state) {
  verify(state.step);  // with the timeout of a step: it does not wait for a disk
  group_.enter(Section::checkpoint, state.step);
  wait_for_saves(std::numeric_limits<double>::infinity());
  write(state);
}

void RunCheckpoints::save_or_skip(const TrainState& state) {
  verify(state.step);
  group_.enter(Section::checkpoint, state.step);
  if (wait_for_saves(skipping_ ? 0 : std::min(5.0, options_.checkpoint_timeout / 10))) return write(state);
  skipped_at_ = std::chrono::steady_clock::now();
  ++skipped_;
  if (std::exchange(skipping_, true) || !files_ || !files_->busy()) return;
  tell(
      fmt::format("the checkpoint of step {} is still under way to {}: {} is slow, and saves are "
                  "skipped until it is there, from that of step {} on",
                  saved_step_, options_.train_dir, storage(), state.step));
}

void RunCheckpoints::keep_best(uint64_t step) {
  if (files_) files_->keep_best(step);
}

void RunCheckpoints::keep_candidate(uint64_t step) {
  if (files_) files_->keep_candidate(step);
}

void RunCheckpoints::save_last(const TrainState& state) {
  save(state);
  wait_for_saves(std::numeric_limits<double>::infinity());
  const bool complete = !files_ || files_->wait().has_value();
  report();
  if (skipped_ > 0 && is_chief())
    observer_.noticed(
        {fmt::format("{} save{} skipped because earlier ones took long", skipped_, skipped_ > 1 ? "s were" : " was")});
  if (!complete) throw Error(Fault::resource, "the last checkpoint could not be written; see above");
  crash_loop_.clear();
  group_.barrier("the last checkpoint");
}

}  // namespace dtrain
