#include "apps/cli/output.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <streambuf>
#include <string>

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apps/cli/stop_signals.h"

namespace dtrain::cli {
namespace {

constexpr std::chrono::seconds kPatienceAfterStop{2};

// write() reports errors.
bool wait_until_writable(int fd) {
  constexpr int kBetweenLooks = 50;  // milliseconds
  while (true) {
    const auto stopping = time_since_stop_request();
    const bool patient = !stopping || *stopping < kPatienceAfterStop;
    pollfd pipe{fd, POLLOUT, 0};
    const int ready = poll(&pipe, 1, patient ? kBetweenLooks : 0);
    if (ready > 0 || (ready < 0 && errno != EINTR)) return true;
    if (!patient) return false;
  }
}

// A writable pipe has room for this many bytes; writes to files are not divided.
size_t piece_of(int fd) {
  struct stat info {};
  return fstat(fd, &info) == 0 && S_ISREG(info.st_mode) ? SIZE_MAX : PIPE_BUF;
}

class PatientBuffer final : public std::streambuf {
 public:
  explicit PatientBuffer(int fd) : fd_(fd) {}

 protected:
  int_type overflow(int_type character) override {
    if (character != traits_type::eof()) text_ += traits_type::to_char_type(character);
    return traits_type::not_eof(character);
  }
  std::streamsize xsputn(const char* text, std::streamsize size) override {
    text_.append(text, static_cast<size_t>(size));
    return size;
  }
  int sync() override {
    const bool written = write_patiently(fd_, text_);
    text_.clear();
    return written ? 0 : -1;
  }

 private:
  int fd_;
  std::string text_;
};

}  // namespace

bool write_patiently(int fd, std::string_view text) noexcept {
  const size_t piece = piece_of(fd);
  while (!text.empty()) {
    if (!wait_until_writable(fd)) {
      errno = ENOBUFS;
      return false;
    }
    const ssize_t written = write(fd, text.data(), std::min(text.size(), piece));
    if (written < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

std::ostream& patient_stdout() {
  static PatientBuffer buffer(STDOUT_FILENO);
  static std::ostream stream(&buffer);
  return stream;
}

std::ostream& patient_stderr() {
  static PatientBuffer buffer(STDERR_FILENO);
  static std::ostream stream(&buffer);
  return stream;
}

}  // namespace dtrain::cli
