#include "dtrain/train/checkpoint.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <filesystem>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "dtrain/io/atomic_file.h"
#include "libdtrain/io/file_format.h"
#include "libdtrain/io/file_lock.h"
#include "libdtrain/train/agreement.h"
#include "libdtrain/train/checkpoint_files.h"

namespace dtrain {
namespace {

constexpr uint64_t kMargin = uint64_t{1} << 20;  // headers and JSON, with margin

using Settings = std::map<std::string, std::string>;

// "model: checkpoint resnet18, this run resnet50", per differing key.
std::vector<std::string> differences(const Settings& saved, const Settings& current) {
  std::set<std::string> keys;
  for (const auto* settings : {&saved, &current})
    for (const auto& [key, value] : *settings) keys.insert(key);
  std::vector<std::string> result;
  for (const std::string& key : keys) {
    const auto value_in = [&](const Settings& settings) {
      const auto it = settings.find(key);
      return it == settings.end() ? std::string("(not set)") : it->second;
    };
    if (value_in(saved) == value_in(current)) continue;
    const auto [before, now] = first_difference(value_in(saved), value_in(current));
    result.push_back(concat(key, ": checkpoint ", before, ", this run ", now));
  }
  return result;
}

std::string join(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : "; ") + part;
  return text;
}

std::string prepare_directory(FileSystem& files, const std::string& train_dir) {
  DT_CHECK(!train_dir.empty(), "checkpoints: train_dir is empty, expected the name of a directory");
  std::string directory = train_dir + "/checkpoints";
  make_directories(files, directory);
  require_success(::access(directory.c_str(), R_OK | W_OK | X_OK), "write to", directory);
  return directory;
}

}  // namespace

struct Checkpointer::Writer {
  Writer(ParameterStore& parameter_store, CheckpointOptions checkpoint_options,
         std::function<void(const std::string&)> warn_people, FileSystem& file_system)
      : store(parameter_store),
        options(std::move(checkpoint_options)),
        warn(warn_people ? std::move(warn_people) : [](const std::string&) {}),
        files(file_system),
        directory(prepare_directory(files, options.train_dir)),
        lock(options.train_dir + "/lock") {
    DT_CHECK(options.max_failures >= 1, "checkpoints: max_failures is ", options.max_failures, ", expected 1 or more");
    if (const int removed = remove_leftovers(files, directory))
      warn(concat("removed ", removed, " unfinished checkpoint", removed > 1 ? "s" : "", " from ", directory));
    for (const BrokenLink& link : list_broken_links(directory)) warn(concat(text_of(link), ": passed over"));
  }

  std::string text_of(const BrokenLink& link) const {
    return concat(checkpoint_path(directory, link.step), " is a link that cannot be followed (", link.reason.message(),
                  ")");
  }

  void join_thread() {
    if (thread.joinable()) thread.join();
  }

  // Rethrows exceptions of `warn`; write() catches all others.
  void finish_thread() {
    const bool saved = thread.joinable();
    join_thread();
    if (thrown) std::rethrow_exception(std::exchange(thrown, nullptr));
    if (saved) link_best(/*durable=*/false);  // may have become known after the thread's last check
  }

  void start_thread() {
    writing = true;
    thread = std::thread([this] {
      try {
        write();
      } catch (...) {
        thrown = std::current_exception();
      }
      writing = false;
    });
  }

  void require_allocated() const {
    DT_CHECK(store.allocated(), "checkpoints in ", directory,
             ": the store holds no values before ParameterStore::allocate()");
  }

  void refuse_after_failures() const {
    if (failures > 0 && fault == Fault::config) throw Error(fault, problem);
    if (failures >= options.max_failures)
      throw Error(fault, concat(failures, " checkpoints in a row failed, the last one with: ", problem));
  }

  void take_snapshot(const TrainState& state) {
    const auto download = [&](const Tensor& arena, std::vector<float>& host) {
      host.resize(static_cast<size_t>(arena.count()));
      store.context().download(arena, host.data(), "checkpoint");
    };
    snapshot.state = state;
    download(store.values(), snapshot.values);
    download(store.buffer_values(), snapshot.buffers);
    if (options.average) download(options.average, snapshot.average);
    snapshot.optimizer.resize(static_cast<size_t>(store.optimizer_states()));
    for (int i = 0; i < store.optimizer_states(); ++i)
      download(store.optimizer_state(i), snapshot.optimizer[static_cast<size_t>(i)]);
  }

  void require_space() const {
    const uint64_t needed = (snapshot.bytes() + kMargin) / 5 * 6;
    uint64_t available = 0;
    if (files.free_bytes(directory, available) == 0 && available < needed)
      throw Error(Fault::resource, concat(directory, ": ", available >> 20, " MiB free, a checkpoint needs ",
                                          needed >> 20, " MiB: free space, or keep fewer checkpoints"));
  }

  // Checkpoints of later steps, from a run that this one does not continue, must not count as newest, but are kept.
  void set_aside_from(uint64_t step) const {
    std::vector<uint64_t> steps = list_checkpoints(directory);
    for (const BrokenLink& link : list_broken_links(directory)) steps.push_back(link.step);
    for (const uint64_t later : steps) {
      if (later < step) continue;
      const std::string path = checkpoint_path(directory, later), aside = path + ".superseded-" + unique_suffix();
      require_success(files.rename(path, aside), "rename", path);
      warn(concat(path, " belongs to an abandoned run: renamed to ", aside));
    }
    std::error_code loop;
    if (const std::string link = best_link(); std::filesystem::is_symlink(link) && !std::filesystem::exists(link, loop))
      require_success(files.unlink(link), "remove", link);
  }

  // Protected steps: the best checkpoint and a candidate.
  std::pair<std::optional<uint64_t>, std::optional<uint64_t>> kept() const {
    const std::lock_guard guard(mutex);
    return {best, candidate};
  }

  std::string best_link() const { return options.train_dir + "/best"; }

  // Includes the target of an existing link, which another run may have made.
  bool is_kept(uint64_t step) const {
    std::error_code missing;
    const auto [known, possible] = kept();
    return step == known || step == possible ||
           std::filesystem::equivalent(best_link(), checkpoint_path(directory, step), missing);
  }

  // Replaces the link atomically, by renaming a temporary one. `durable`: syncs, on the writer thread; other callers
  // must not wait, and a link lost in a power failure is restored at the next start.
  void link_best(bool durable) const {
    std::error_code missing;
    const std::string link = best_link(), made = link + ".new";
    const std::optional<uint64_t> known = kept().first;
    if (!known || !looks_complete(checkpoint_path(directory, *known)) ||
        std::filesystem::equivalent(link, checkpoint_path(directory, *known), missing))
      return;
    files.unlink(made);  // left by a killed run
    if (files.symlink(checkpoint_path("checkpoints", *known), made) < 0 || files.rename(made, link) < 0 ||
        (durable && files.sync_directory(options.train_dir) < 0))
      warn(describe_errno("link the best checkpoint", link));
  }

  void write() {
    const uint64_t step = snapshot.state.step;
    const std::string path = checkpoint_path(directory, step), temporary = temporary_name(path);
    try {
      require_space();
      const uint64_t bytes = write_checkpoint(files, temporary, store, snapshot);
      set_aside_from(step);
      commit_directory(files, temporary, path);
      verify_checkpoint(path);
      link_best(/*durable=*/true);
      prune();
      publish(step, path);
      const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
      last = SaveReport{step, path, bytes, elapsed.count()};
      failures = 0;
    } catch (const std::exception& error) {
      const auto* const known = dynamic_cast<const Error*>(&error);
      fault = known ? known->fault() : Fault::resource;
      problem = error.what();
      ++failures;
      remove_files(files, temporary);
      warn(concat("checkpoint of step ", step, " failed (", failures, " in a row, the run ends at ",
                  options.max_failures, "): ", problem));
    }
  }

  void publish(uint64_t step, const std::string& path) const {
    if (!options.publish) return;
    CommittedCheckpoint committed{step, path, kept_newest(), {}};
    for (const uint64_t other : list_checkpoints(directory))
      if (is_kept(other)) committed.kept_too.push_back(other);
    options.publish(committed);
  }

  int64_t kept_newest() const { return std::max<int64_t>(options.keep, 2); }

  // Prunes all but the newest `keep` complete checkpoints and the protected ones. Damaged ones do not count.
  void prune() const {
    std::vector<uint64_t> steps = list_checkpoints(directory);
    int64_t kept = 0;
    while (!steps.empty() && kept < kept_newest()) {
      kept += looks_complete(checkpoint_path(directory, steps.back()));
      steps.pop_back();
    }
    for (uint64_t step : steps) {
      const std::string path = checkpoint_path(directory, step), doomed = temporary_name(path);
      if (std::filesystem::is_symlink(path) || is_kept(step)) continue;  // moved elsewhere by the user, so kept
      // Renamed first: a partly removed one must not appear as damaged.
      if (files.rename(path, doomed) < 0 || !remove_files(files, doomed))
        warn(describe_errno("remove old checkpoint", path));
    }
  }

  RestoreReport load(const std::string& path, const VerifiedCheckpoint& verified, const TrainState& expected) {
    RestoreReport report{verified.state, path, {}};
    if (const auto differing = differences(report.state.identity, expected.identity); !differing.empty())
      throw Error(Fault::checkpoint, concat(path, " belongs to another run: ", join(differing),
                                            "; continue with its settings, or train in another directory"));
    load_tensors(path, store, options.average);
    for (const std::string& extra : verified.extra) report.notices.push_back(concat(path, "/", extra, ": ignored"));
    for (std::string& changed : differences(report.state.settings, expected.settings))
      report.notices.push_back(std::move(changed));
    std::error_code missing;
    if (std::filesystem::equivalent(path, checkpoint_path(directory, report.state.step), missing))
      last = SaveReport{report.state.step, path};
    return report;
  }

  ParameterStore& store;
  CheckpointOptions options;
  std::function<void(const std::string&)> warn;
  FileSystem& files;
  std::string directory;
  FileLock lock;
  std::thread thread;
  std::atomic<bool> writing = false;
  mutable std::mutex mutex;
  std::optional<uint64_t> best, candidate;  // guarded by the mutex: read by the thread
  // Owned by the writer thread while it runs; others join it first.
  CheckpointSnapshot snapshot;
  std::chrono::steady_clock::time_point begin;
  std::optional<SaveReport> last;  // also after a restore
  int failures = 0;
  Fault fault = Fault::resource;  // of the last failure; its text is `problem`
  std::string problem;
  std::exception_ptr thrown;
};

Checkpointer::Checkpointer(ParameterStore& store, CheckpointOptions options,
                           std::function<void(const std::string&)> warn, FileSystem& files)
    : writer_(std::make_unique<Writer>(store, std::move(options), std::move(warn), files)) {}

Checkpointer::~Checkpointer() { writer_->join_thread(); }

void Checkpointer::save(const TrainState& state) {
  writer_->finish_thread();
  writer_->require_allocated();
  writer_->refuse_after_failures();
  if (writer_->last && writer_->last->step == state.step) return;
  writer_->begin = std::chrono::steady_clock::now();
  writer_->last.reset();
  writer_->take_snapshot(state);
  if (writer_->options.asynchronous) {
    writer_->start_thread();
    return;
  }
  writer_->write();
  writer_->refuse_after_failures();
}

std::optional<SaveReport> Checkpointer::wait() {
  writer_->finish_thread();
  return writer_->last;
}

bool Checkpointer::busy(double seconds) const {
  const auto begin = std::chrono::steady_clock::now();
  while (writer_->writing && std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() < seconds)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return writer_->writing;
}

std::optional<SaveReport> Checkpointer::finished() { return busy() ? std::nullopt : wait(); }

void Checkpointer::keep_best(uint64_t step) {
  {
    const std::lock_guard lock(writer_->mutex);
    writer_->best = step;
  }
  if (busy()) return;
  writer_->finish_thread();
  writer_->link_best(/*durable=*/false);
}

void Checkpointer::keep_candidate(uint64_t step) {
  const std::lock_guard lock(writer_->mutex);
  writer_->candidate = step;
}

std::optional<RestoreReport> Checkpointer::restore_latest(const TrainState& expected) {
  writer_->finish_thread();
  writer_->require_allocated();
  std::vector<std::string> notices, problems;
  const std::vector<uint64_t> steps = list_checkpoints(writer_->directory);
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    const std::string path = checkpoint_path(writer_->directory, *step);
    VerifiedCheckpoint verified;
    try {
      verified = verify_checkpoint(path);
    } catch (const FormatError&) {
      throw;
    } catch (const Error& error) {
      if (error.fault() == Fault::resource) throw;  // not a sign of damage
      problems.push_back(error.what());
      notices.push_back(concat("skipped a damaged checkpoint: ", error.what()));
      continue;
    }
    RestoreReport report = writer_->load(path, verified, expected);
    report.notices.insert(report.notices.begin(), notices.begin(), notices.end());
    return report;
  }
  for (const BrokenLink& link : list_broken_links(writer_->directory))
    if (!link.is_loop()) problems.push_back(writer_->text_of(link));
  if (problems.empty()) return std::nullopt;
  throw Error(Fault::checkpoint, concat("no usable checkpoint in ", writer_->directory, ": ", join(problems),
                                        "; to start from the beginning, move them away"));
}

RestoreReport Checkpointer::restore(const std::string& path, const TrainState& expected) {
  writer_->finish_thread();
  writer_->require_allocated();
  std::error_code unknown;
  if (!std::filesystem::exists(path + "/MANIFEST.json", unknown))
    throw Error(
        Fault::checkpoint,
        concat(path, " is not the folder of a checkpoint: no MANIFEST.json in it; expected .../checkpoints/step-<N>"));
  return writer_->load(path, verify_checkpoint(path), expected);
}

std::optional<std::string> Checkpointer::latest() const {
  writer_->join_thread();
  return newest_checkpoint(writer_->options.train_dir, looks_complete);
}

}  // namespace dtrain
