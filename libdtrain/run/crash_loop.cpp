// The marker file.
#include "libdtrain/run/crash_loop.h"

#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libdtrain/io/atomic_file.h"
#include "libdtrain/io/input_file.h"
#include "libdtrain/io/json_limits.h"

namespace dtrain {
namespace {

// A failure that another start would not cure.
bool is_final(int code) { return code == static_cast<int>(Fault::data) || code == static_cast<int>(Fault::numeric); }

}  // namespace

CrashLoop::CrashLoop(const std::string& train_dir, bool is_chief)
    : path_(train_dir.empty() ? "" : train_dir + "/starts.json"), is_chief_(is_chief) {}

// A marker that is damaged or of another step counts nothing: it shall not keep a job from its work.
CrashLoop::Marker CrashLoop::read() const {
  constexpr size_t kMaxBytes = 1 << 16;
  Marker marker;
  try {
    if (!std::filesystem::exists(path_)) return {step_, 0, 0, ""};
    const auto json = nlohmann::json::parse(read_text(path_, kMaxBytes));
    marker.step = count_at(json, "checkpoint_step", UINT64_MAX, path_, Fault::checkpoint);
    marker.starts = static_cast<int>(count_at(json, "starts", INT32_MAX, path_, Fault::checkpoint));
    marker.code = static_cast<int>(count_at(json, "code", 255, path_, Fault::checkpoint));
    json.at("error").get_to(marker.error);
  } catch (const std::exception&) {
    return {step_, 0, 0, ""};
  }
  return marker.step == step_ ? marker : Marker{step_, 0, 0, ""};
}

void CrashLoop::write(const Marker& marker) const {
  const nlohmann::json json = {
      {"checkpoint_step", marker.step}, {"starts", marker.starts}, {"code", marker.code}, {"error", marker.error}};
  try {
    AtomicFile file(path_);
    file.write(json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
    file.commit();
  } catch (const Error&) {  // a full disk: checkpoints have said so
  }
}

void CrashLoop::begin(uint64_t step) {
  step_ = step;
  if (path_.empty() || !is_chief_) return;
  const Marker marker = read();
  if (marker.starts < kStarts) return;
  throw Error(is_final(marker.code) ? static_cast<Fault>(marker.code) : Fault::checkpoint,
              fmt::format("{} starts have trained from step {} and none reached the next checkpoint; the last ended "
                          "with: {}; once the cause is removed, delete {} to go on",
                          marker.starts, step, marker.error.empty() ? "no word, as one killed" : marker.error, path_));
}

void CrashLoop::count() {
  if (path_.empty() || counted_) return;
  counted_ = true;
  if (!is_chief_) return;
  Marker marker = read();
  ++marker.starts;
  marker.code = 0;
  marker.error.clear();
  write(marker);
}

void CrashLoop::record(const Error& error) {
  if (path_.empty() || !counted_) return;
  Marker marker = read();
  if (marker.starts == 0) return;
  marker.code = static_cast<int>(error.fault());
  marker.error = error.what();
  write(marker);
}

void CrashLoop::clear() {
  if (path_.empty() || !is_chief_) return;
  std::error_code none;
  std::filesystem::remove(path_, none);
}

}  // namespace dtrain
