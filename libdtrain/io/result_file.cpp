#include "libdtrain/io/result_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "dtrain/core/error.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

// Whether the name refers to an open descriptor rather than to a path.
bool names_descriptor(const std::string& path) {
  std::error_code ignored;
  return fs::is_symlink(path, ignored) && fs::equivalent(directory_of(path), "/proc/self/fd", ignored);
}

// Final target of `path`: the first name that is neither a link nor a descriptor.
std::string follow_links(std::string path) {
  constexpr int kMaxLinks = 40;  // the kernel's limit
  const std::string name = path;
  for (int i = 0; i < kMaxLinks; ++i) {
    std::error_code no_link;
    if (names_descriptor(path)) return path;
    const fs::path target = fs::read_symlink(path, no_link);
    if (no_link) return path;
    path = (fs::path(directory_of(path)) / target).string();
  }
  throw Error(concat(name, ": its links form a cycle; choose another name"));
}

}  // namespace

ResultFile::ResultFile(const std::string& path, FileSystem& files) {
  const std::string place = follow_links(path);
  if (names_descriptor(place)) {
    const int named = std::stoi(fs::path(place).filename());
    through_.emplace(files, path, ::fcntl(named, F_DUPFD_CLOEXEC, 0));
    return;
  }
  struct stat info;
  const bool exists = ::stat(place.c_str(), &info) == 0;
  DT_CHECK(!exists || !S_ISDIR(info.st_mode), path, ": is a directory; choose another name");
  if (exists && !S_ISREG(info.st_mode)) {
    through_.emplace(files, path, ::open(place.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC));
    return;
  }
  // rename() would replace a write-protected file, so access is checked.
  if (exists) require_success(::access(place.c_str(), W_OK), "write to", path);
  replaced_.emplace(place, files);
}

std::string replaced_file(const std::string& path) {
  std::error_code failure;
  const std::string place = follow_links(path);
  return !names_descriptor(place) && fs::is_regular_file(place, failure) ? place : std::string();
}

void ResultFile::commit() { through_ ? through_->sync() : replaced_->commit(); }

}  // namespace dtrain
