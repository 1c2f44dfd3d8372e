#include "dtrain/io/event_file.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <span>
#include <utility>

#include "dtrain/core/error.h"
#include "dtrain/io/record_file.h"
#include "libdtrain/io/event.pb.h"

namespace dtrain {
namespace {

constexpr std::string_view kPrefix = "events.out.tfevents.";
constexpr size_t kDigits = 10;  // of the seconds in a name
constexpr uint64_t kLastSecond = 9'999'999'999;
constexpr char kVersion[] = "brain.Event:2";

tensorboard::Event event_at(double wall_time, uint64_t step) {
  tensorboard::Event event;
  event.set_wall_time(wall_time);
  if (step > 0) event.set_step(static_cast<int64_t>(step));
  return event;
}

// The seconds in the name of an event file.
std::optional<uint64_t> seconds_of(std::string_view name) {
  if (!name.starts_with(kPrefix) || name.size() < kPrefix.size() + kDigits) return std::nullopt;
  const std::string_view digits = name.substr(kPrefix.size(), kDigits);
  uint64_t seconds = 0;
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + kDigits, seconds);
  return problem == std::errc() && end == digits.data() + kDigits ? std::optional(seconds) : std::nullopt;
}

std::string path_of(const EventFileOptions& options, double wall_time) {
  constexpr std::string_view kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_";
  uint64_t seconds = static_cast<uint64_t>(std::clamp(wall_time, 0.0, static_cast<double>(kLastSecond)));
  std::error_code unreadable;  // ignored: opening the file reports the error
  for (const auto& entry : std::filesystem::directory_iterator(options.folder, unreadable))
    if (const auto other = seconds_of(entry.path().filename().string()); other && *other < kLastSecond)
      seconds = std::max(seconds, *other + 1);
  std::string digits = std::to_string(seconds), host = options.host;
  digits.insert(0, kDigits - digits.size(), '0');
  for (char& letter : host)
    if (kPlain.find(letter) == kPlain.npos) letter = '_';
  return concat(options.folder, "/", kPrefix, digits, ".", host);
}

}  // namespace

EventFile::EventFile(const EventFileOptions& options, std::optional<uint64_t> first_step, double wall_time,
                     FileSystem& files)
    : options_(options), file_(files, path_of(options, wall_time)) {
  tensorboard::Event version = event_at(wall_time, 0);
  version.set_file_version(kVersion);
  append(version);
  if (first_step) {
    tensorboard::Event start = event_at(wall_time, *first_step);
    start.mutable_session_log()->set_status(tensorboard::SessionLog::START);
    append(start);
  }
  flush();
}

EventFile::~EventFile() {
  try {
    flush();
  } catch (const std::exception&) {  // nobody is left who would care
  }
}

void EventFile::append(const tensorboard::Event& event) {
  const std::string bytes = event.SerializeAsString();
  const RecordFrame frame(std::as_bytes(std::span(bytes)));
  pending_ += frame.header();
  pending_ += bytes;
  pending_ += frame.footer();
  ++events_;
}

void EventFile::add(uint64_t step, double wall_time, const Summary& summary) {
  tensorboard::Event event = event_at(wall_time, step);
  *event.mutable_summary() = summary.message();
  append(event);
  if (!oldest_) oldest_ = wall_time;
  if (events_ >= options_.most_pending || wall_time - *oldest_ >= options_.most_seconds) flush();
}

void EventFile::flush() {
  const std::string bytes = std::exchange(pending_, {});  // none of it is written twice
  events_ = 0;
  oldest_.reset();
  if (!bytes.empty()) file_.write(bytes);
}

}  // namespace dtrain
