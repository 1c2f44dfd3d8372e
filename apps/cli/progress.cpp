#include "apps/cli/progress.h"

#include <unistd.h>

#include <fmt/format.h>

#include "apps/cli/messages.h"

namespace dtrain::cli {
namespace {

constexpr double kTerminalInterval = 0.2, kPlainInterval = 10;  // seconds

std::string clock_text(double seconds) {
  const auto whole = static_cast<int64_t>(seconds + 0.5);
  if (whole >= 3600) return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

}  // namespace

Progress::Progress(std::string what, uint64_t total)
    : what_(std::move(what)),
      total_(total),
      terminal_(isatty(STDERR_FILENO) == 1),
      start_(std::chrono::steady_clock::now()),
      next_print_(terminal_ ? kTerminalInterval : kPlainInterval) {}

Progress::~Progress() {
  if (line_open_) print_on_stderr("\n");
}

double Progress::elapsed() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

std::string Progress::line(uint64_t done, double seconds) const {
  const double rate = seconds > 0 ? static_cast<double>(done) / seconds : 0;
  std::string text = fmt::format("{}/{} {}, {:.0f}/s", done, total_, what_, rate);
  if (done < total_ && rate > 0) text += ", " + clock_text(static_cast<double>(total_ - done) / rate) + " left";
  return text;
}

void Progress::update(uint64_t done) {
  done_ = done;
  const double seconds = elapsed();
  if (seconds < next_print_) return;
  next_print_ = seconds + (terminal_ ? kTerminalInterval : kPlainInterval);
  const std::string text = line(done, seconds);
  line_open_ = terminal_;
  print_on_stderr(terminal_ ? "\r\033[K" + text : text + "\n");
}

double Progress::finish() {
  const double seconds = elapsed();
  line_open_ = false;
  print_on_stderr(fmt::format("{}{} in {}\n", terminal_ ? "\r\033[K" : "", line(done_, seconds), clock_text(seconds)));
  return seconds;
}

}  // namespace dtrain::cli
