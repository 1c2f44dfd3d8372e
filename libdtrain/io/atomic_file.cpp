#include "dtrain/io/atomic_file.h"

#include <sys/random.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "dtrain/core/error.h"
#include "libdtrain/io/crc32c.h"

namespace dtrain {
namespace {

constexpr std::string_view kTemporary = ".tmp-";
constexpr size_t kSuffix = 16;  // hex digits

}  // namespace

OutputFile::OutputFile(FileSystem& files, std::string path)
    : files_(files), path_(std::move(path)), fd_(files_.create(path_)) {
  require_success(fd_, "create", path_);
}

OutputFile::OutputFile(FileSystem& files, std::string path, int fd) : files_(files), path_(std::move(path)), fd_(fd) {
  require_success(fd_, "open", path_);
}

OutputFile::~OutputFile() {
  if (fd_ >= 0) files_.close(fd_);
}

void OutputFile::write(const void* data, size_t size) {
  DT_CHECK(fd_ >= 0, path_, ": written after it was closed");
  crc_ = crc32c(data, size, crc_);
  size_ += size;
  for (auto at = static_cast<const char*>(data); size > 0;) {
    const ssize_t written = files_.write(fd_, at, size);
    if (written < 0 && errno == EINTR) continue;
    require_success(written, "write", path_);
    if (written == 0) throw Error(Fault::resource, concat("write ", path_, ": the file system took no bytes"));
    at += written;
    size -= static_cast<size_t>(written);
  }
}

void OutputFile::sync() {
  // FIFOs and most devices do not support fsync.
  if (files_.sync(fd_) < 0 && errno != EINVAL) throw Error(Fault::resource, describe_errno("fsync", path_));
  close();
}

void OutputFile::close() { require_success(files_.close(std::exchange(fd_, -1)), "close", path_); }

AtomicFile::AtomicFile(std::string path, FileSystem& files)
    : files_(files), path_(std::move(path)), file_(files, temporary_name(path_)) {}

AtomicFile::~AtomicFile() {
  if (!committed_) files_.unlink(file_.path());
}

void AtomicFile::commit(bool durable) {
  durable ? file_.sync() : file_.close();
  require_success(files_.rename(file_.path(), path_), "rename to", path_);
  committed_ = true;
  if (durable) require_success(files_.sync_directory(directory_of(path_)), "fsync", directory_of(path_));
}

// Not std::random_device: RDSEED takes a quarter of a millisecond for these digits.
std::string unique_suffix() {
  uint64_t random = 0;
  if (::getrandom(&random, sizeof random, 0) != sizeof random)
    throw Error(Fault::resource, describe_errno("getrandom for the name of", "a new file"));
  std::string suffix;
  for (size_t i = 0; i < kSuffix; ++i) suffix += "0123456789abcdef"[random >> 4 * i & 15];
  return suffix;
}

std::string temporary_name(const std::string& path) { return concat(path, kTemporary, unique_suffix()); }

bool is_temporary_name(std::string_view path) {
  if (path.size() < kTemporary.size() + kSuffix) return false;
  const std::string_view suffix = path.substr(path.size() - kSuffix);
  return path.substr(0, path.size() - kSuffix).ends_with(kTemporary) &&
         suffix.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string directory_of(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return path.substr(0, std::max<size_t>(slash, 1));
}

void make_directories(FileSystem& files, const std::string& path) {
  struct stat info;
  if (::stat(path.c_str(), &info) == 0) {
    if (!S_ISDIR(info.st_mode)) throw Error(Fault::config, concat(path, ": is not a directory; choose another name"));
    return;
  }
  const std::string parent = directory_of(path);
  if (parent != path) make_directories(files, parent);
  const int status = files.make_directory(path);
  if (status < 0 && errno == EEXIST) return;  // created by another process in between
  require_success(status, "mkdir", path);
  require_success(files.sync_directory(parent), "fsync", parent);
}

bool remove_files(FileSystem& files, const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code gone;
  if (!fs::is_directory(fs::symlink_status(path, gone))) {
    errno = ENOTDIR;
    return false;
  }
  for (const auto& entry : fs::directory_iterator(path, gone))
    if (files.unlink(entry.path()) < 0) return false;
  return files.remove_directory(path) == 0;
}

void commit_directory(FileSystem& files, const std::string& from, const std::string& to) {
  require_success(files.sync_directory(from), "fsync", from);
  require_success(files.rename(from, to), "rename to", to);
  require_success(files.sync_directory(directory_of(to)), "fsync", directory_of(to));
}

}  // namespace dtrain
