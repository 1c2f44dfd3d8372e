#include "libdtrain/core/kernel_log.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <unistd.h>

namespace dtrain {
namespace {

// Each non-blocking read returns one record.
std::string read_log(const std::filesystem::path& path) {
  constexpr size_t kMostBytes = 64 << 20;
  std::string text;
  const int file = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return text;
  char part[8192];
  while (text.size() < kMostBytes) {
    const ssize_t came = ::read(file, part, sizeof part);
    if (came < 0 && (errno == EPIPE || errno == EINTR)) continue;  // EPIPE: the next record was overwritten
    if (came <= 0) break;
    text.append(part, static_cast<size_t>(came));
  }
  ::close(file);
  return text;
}

uint64_t number_at(std::string_view text) {
  uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

uint64_t kernel_time() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(now).count());
}

bool logs_oom_kill(const std::vector<int>& pids, uint64_t since, const std::filesystem::path& log) {
  constexpr std::string_view kKilled = "Killed process ";
  // Clock slack: the log's clock is not corrected and drifts by minutes in weeks.
  constexpr uint64_t kSlack = 600'000'000;
  const std::string text = read_log(log);
  // Format (priority, number, time; text): "3,1234,5678901,-;Memory cgroup out of memory: Killed process 42 (name)
  // ...".
  for (size_t begin = 0, end = 0; (end = text.find('\n', begin)) != text.npos; begin = end + 1) {
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    const size_t killed = line.find(kKilled), message = line.find(';');
    if (killed == line.npos || message == line.npos || message > killed) continue;
    if (line.find("ut of memory", message) > killed) continue;
    const size_t second = line.find(',', line.find(',') + 1);
    if (second > message || number_at(line.substr(second + 1)) + kSlack < since) continue;
    const uint64_t pid = number_at(line.substr(killed + kKilled.size()));
    if (std::ranges::any_of(pids, [&](int one) { return pid == static_cast<uint64_t>(one); })) return true;
  }
  return false;
}

}  // namespace dtrain
