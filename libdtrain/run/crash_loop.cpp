// Marker file of crash loops.
#include "libdtrain/run/crash_loop.h"

#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "dtrain/io/atomic_file.h"
#include "dtrain/io/input_file.h"
#include "libdtrain/core/control_groups.h"
#include "libdtrain/core/kernel_log.h"
#include "libdtrain/io/json_limits.h"

namespace dtrain {
namespace {

// Steps by which a GPU may lag behind the host when an error is detected.
constexpr uint64_t kNear = 2;

// Whether a restart cannot help.
bool is_final(int code) { return code == static_cast<int>(Fault::data) || code == static_cast<int>(Fault::numeric); }

bool are_near(uint64_t a, uint64_t b) { return (a < b ? b - a : a - b) <= kNear; }

}  // namespace

CrashLoop::CrashLoop(const std::string& train_dir, bool is_chief, std::filesystem::path root)
    : path_(train_dir.empty() ? "" : train_dir + "/starts.json"),
      crash_path_(train_dir.empty() ? "" : train_dir + "/crashed"),
      is_chief_(is_chief),
      root_(std::move(root)) {}

// A damaged or outdated marker counts nothing: it must not stop a job.
CrashLoop::Marker CrashLoop::read() const {
  constexpr size_t kMaxBytes = 1 << 16;
  const Marker none{.step = marker_.step};
  Marker marker;
  try {
    if (!std::filesystem::exists(path_)) return none;
    const auto json = parse_json<nlohmann::json>(read_text(path_, kMaxBytes), path_, Fault::checkpoint);
    const auto count = [&](const char* key, uint64_t most) {
      return count_at(json, key, most, path_, Fault::checkpoint);
    };
    marker.step = count("checkpoint_step", UINT64_MAX);
    for (const auto& [key, number] :
         {std::pair("starts", &marker.starts), std::pair("errors", &marker.errors),
          std::pair("killed_for_memory", &marker.memory), std::pair("killed", &marker.kills)})
      *number = static_cast<int>(count(key, INT32_MAX - 1));
    marker.error_step = count("error_step", UINT64_MAX);
    marker.code = static_cast<int>(count("code", 255));
    marker.oom_kills = count("oom_kills", UINT64_MAX);
    marker.memory_limit = count("memory_limit", UINT64_MAX);
    marker.time = count("kernel_time", UINT64_MAX);
    json.at("pids").get_to(marker.pids);
    json.at("error").get_to(marker.error);
    json.at("control_group").get_to(marker.group);
    json.at("open").get_to(marker.open);
    json.at("trained").get_to(marker.trained);
  } catch (const std::exception&) {
    return none;
  }
  return marker.step == marker_.step ? marker : none;
}

// Not synced: a power failure loses only a count, and ranks would wait for a slow disk.
void CrashLoop::write() const {
  const nlohmann::json json = {{"checkpoint_step", marker_.step},
                               {"starts", marker_.starts},
                               {"errors", marker_.errors},
                               {"killed_for_memory", marker_.memory},
                               {"killed", marker_.kills},
                               {"error_step", marker_.error_step},
                               {"code", marker_.code},
                               {"error", marker_.error},
                               {"open", marker_.open},
                               {"trained", marker_.trained},
                               {"control_group", marker_.group},
                               {"oom_kills", marker_.oom_kills},
                               {"memory_limit", marker_.memory_limit},
                               {"kernel_time", marker_.time},
                               {"pids", marker_.pids}};
  try {
    AtomicFile file(path_);
    file.write(json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
    file.commit(/*durable=*/false);
  } catch (const Error&) {  // full disk: already reported by checkpoints
  }
}

// Classifies the end of the last start from external evidence.
void CrashLoop::classify_last_exit() {
  std::error_code none;
  const bool crashed = std::filesystem::remove(crash_path_, none);
  if (!std::exchange(marker_.open, false)) return;
  const MemoryGroup now = memory_group(root_);
  const bool for_memory = (now.name == marker_.group && now.oom_kills > marker_.oom_kills) ||
                          logs_oom_kill(marker_.pids, marker_.time, root_ / "dev/kmsg");
  if (!for_memory && !marker_.trained && !(crashed && marker_.step > 0)) return;
  marker_.starts += marker_.trained ? 0 : 1;
  ++(for_memory ? marker_.memory : crashed ? marker_.errors : marker_.kills);
  marker_.code = for_memory ? static_cast<int>(Fault::resource) : 0;
  marker_.error = for_memory ? "killed for lack of memory" : crashed ? "a crash of a rank" : "";
  write();  // the cgroup may change at the next start
}

void CrashLoop::refuse_memory() const {
  const uint64_t limit = marker_.memory_limit;
  const std::string had = limit > 0 ? fmt::format("more than the {} MiB that its control group allowed", limit >> 20)
                                    : "more than this machine had free";
  throw Error(Fault::resource,
              fmt::format("{} starts from step {} were killed for lack of memory before the next checkpoint: the job "
                          "needs {}; allow it more, or use a smaller batch or fewer workers and delete {} to go on",
                          marker_.memory, marker_.step, had, path_));
}

void CrashLoop::refuse_errors() const {
  throw Error(
      is_final(marker_.code) ? static_cast<Fault>(marker_.code) : Fault::checkpoint,
      fmt::format("{} starts have trained from step {} and failed at the same place, or crashed, before the next "
                  "checkpoint; the last ended with: {}; once the cause is removed, delete {} to go on",
                  marker_.errors, marker_.step, marker_.error, path_));
}

int CrashLoop::begin(uint64_t step) {
  marker_.step = step;
  if (path_.empty() || !is_chief_) return 0;
  marker_ = read();
  classify_last_exit();
  const uint64_t had = marker_.memory_limit, has = memory_group(root_).limit;
  if (had > 0 && (has == 0 || has > had)) marker_.memory = 0;
  if (marker_.memory >= kStarts) refuse_memory();
  if (marker_.errors >= kStarts) refuse_errors();
  return marker_.kills;
}

void CrashLoop::begin_attempt(const std::vector<int>& pids) {
  if (path_.empty() || !is_chief_) return;
  const MemoryGroup now = memory_group(root_);
  marker_.open = true;
  marker_.trained = false;
  marker_.group = now.name;
  marker_.oom_kills = now.oom_kills;
  marker_.memory_limit = now.limit;
  marker_.time = kernel_time();
  marker_.pids = pids;
  write();
}

void CrashLoop::first_step_done() {
  if (path_.empty() || counted_) return;
  counted_ = true;
  if (!is_chief_) return;
  marker_ = read();
  if (!marker_.open) return;  // a rank that failed in the next step has recorded it
  ++marker_.starts;
  marker_.trained = true;
  marker_.code = 0;
  marker_.error.clear();
  write();
}

void CrashLoop::record(const Error& error, uint64_t at) {
  if (path_.empty() || error.fault() == Fault::communication) return;
  marker_ = read();
  if (!marker_.open) return;  // another rank has recorded it
  marker_.open = false;
  if (counted_ || marker_.step > 0) {
    marker_.starts += marker_.trained ? 0 : 1;
    marker_.trained = true;
    marker_.errors = marker_.errors > 0 && are_near(marker_.error_step, at) ? marker_.errors + 1 : 1;
    marker_.error_step = at;
    marker_.code = static_cast<int>(error.fault());
    marker_.error = error.what();
  }
  write();
}

void CrashLoop::leave_out() {
  if (path_.empty()) return;
  marker_ = read();
  if (std::exchange(marker_.open, false)) write();
}

void CrashLoop::clear() {
  if (path_.empty() || !is_chief_) return;
  std::error_code none;
  std::filesystem::remove(path_, none);
}

}  // namespace dtrain
