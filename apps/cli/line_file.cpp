#include "apps/cli/line_file.h"

#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dtrain/core/error.h"

namespace dtrain::cli {
namespace {

constexpr char kOther[] = ": is a link or no file, which lines are not appended to; move it away";

}  // namespace

void LineFile::open(const std::string& path) {
  // Does not block on a FIFO.
  const int fd =
      ::open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0666);
  DT_CHECK(fd >= 0 || (errno != ELOOP && errno != EISDIR), path, kOther);
  file_.emplace(system_files(), path, fd);
  struct stat info;
  if (::fstat(fd, &info) < 0 || !S_ISREG(info.st_mode)) {
    file_.reset();
    throw Error(concat(path, kOther));
  }
  char last = '\n';
  if (info.st_size > 0 && ::pread(fd, &last, 1, info.st_size - 1) == 1 && last != '\n') file_->write("\n");
  file_->write(std::exchange(waiting_, {}));
}

void LineFile::append(std::string_view line) {
  std::string text(line);
  text += '\n';
  if (file_)
    file_->write(text);
  else
    waiting_ += text;
}

}  // namespace dtrain::cli
