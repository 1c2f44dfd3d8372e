#include "libdtrain/io/trace_file.h"

#include <cmath>

#include <fcntl.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "dtrain/core/error.h"

namespace dtrain {
namespace {

using Json = nlohmann::ordered_json;

// Replaces invalid UTF-8, e.g. in file and host names.
std::string text_of(const Json& event) { return event.dump(-1, ' ', false, Json::error_handler_t::replace); }

// Microseconds, with nanosecond resolution.
double microseconds(std::chrono::steady_clock::duration time) {
  return static_cast<double>(std::chrono::duration_cast<std::chrono::nanoseconds>(time).count()) / 1e3;
}

Json metadata(const char* what, size_t lane, const char* key, const Json& value) {
  return {{"name", what}, {"ph", "M"}, {"pid", 0}, {"tid", lane}, {"args", {{key, value}}}};
}

}  // namespace

TraceFile::TraceFile(const std::string& path, const std::string& process, Clock::time_point origin) : origin_(origin) {
  struct stat info;
  DT_CHECK(::stat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode), path, ": is a directory; choose another name");
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_NOCTTY | O_CLOEXEC, 0666);
  file_.emplace(system_files(), path, fd);
  file_->write("[\n" + text_of(metadata("process_name", 0, "name", process)));
}

// Each event is preceded by its comma, so that appending a bracket always gives a valid array.
void TraceFile::write_event(const std::string& event) {
  if (file_) file_->write(",\n" + event);
}

size_t TraceFile::lane(const std::string& name) {
  const auto [found, fresh] = lanes_.emplace(name, lanes_.size() + 1);
  if (fresh) {
    write_event(text_of(metadata("thread_name", found->second, "name", name)));
    write_event(text_of(metadata("thread_sort_index", found->second, "sort_index", found->second)));
  }
  return found->second;
}

template <class Work>
void TraceFile::guarded(const Work& work) noexcept {
  const std::lock_guard lock(mutex_);
  if (!file_) return;
  try {
    work();
  } catch (const std::exception& error) {
    failure_ = error.what();
    file_.reset();
  }
}

void TraceFile::add_lane(const std::string& name) {
  guarded([&] { lane(name); });
}

void TraceFile::add(const TraceSpan& span) noexcept {
  guarded([&] {
    Json event = {{"name", span.name},
                  {"ph", "X"},
                  {"pid", 0},
                  {"tid", lane(span.lane)},
                  {"ts", microseconds(span.begin - origin_)},
                  {"dur", microseconds(span.end - span.begin)}};
    for (const auto& [key, value] : span.args)
      std::visit([&event, &name = key](const auto& known) { event["args"][name] = known; }, value);
    write_event(text_of(event));
  });
}

void TraceFile::close() {
  guarded([&] {
    file_->write("\n]\n");
    file_->close();
    file_.reset();
  });
}

std::string TraceFile::take_failure() {
  const std::lock_guard lock(mutex_);
  return std::exchange(failure_, {});
}

}  // namespace dtrain
