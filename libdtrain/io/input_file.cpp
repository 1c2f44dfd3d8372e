#include "dtrain/io/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "dtrain/io/file_system.h"
#include "dtrain/io/remote_path.h"
#include "libdtrain/io/crc32c.h"
#include "libdtrain/io/remote/remote_file.h"

namespace dtrain {

InputFile::InputFile(std::string path, Fault fault) : path_(std::move(path)), fault_(fault) {
  if (is_remote(path_)) {
    remote_ = std::make_unique<const remote::RemoteFile>(path_, fault_);
    path_ = shown_path(path_);
    size_ = remote_->size();
    revision_ = remote_->revision();
    return;
  }
  // O_NONBLOCK: opening a FIFO must not wait for a writer.
  fd_ = ::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd_ < 0) fail("open");
  struct stat info;
  std::string problem;
  if (::fstat(fd_, &info) < 0)
    problem = describe_errno("stat", path_);
  else if (S_ISDIR(info.st_mode))
    problem = concat(path_, ": is a directory, expected a file");
  else if (!S_ISREG(info.st_mode))
    problem = concat(path_, ": is a FIFO, socket or device, expected a regular file");
  if (!problem.empty()) {
    ::close(fd_);
    throw Error(fault_, problem);
  }
  size_ = static_cast<uint64_t>(info.st_size);
  revision_ = int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
}

InputFile::~InputFile() {
  if (fd_ >= 0) ::close(fd_);
}

void InputFile::fail(const char* call) const {
  const Fault fault = fault_of_errno(errno, fault_);
  throw Error(fault, describe_errno(call, path_));
}

size_t InputFile::read_some(uint64_t offset, void* to, size_t size) const {
  if (remote_) return remote_->read_some(offset, to, size);
  size_t done = 0;
  while (done < size) {
    const ssize_t got = ::pread(fd_, static_cast<char*>(to) + done, size - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("read");
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  return done;
}

void InputFile::read(uint64_t offset, void* to, size_t size) const {
  const size_t got = read_some(offset, to, size);
  if (got != size)
    throw Error(fault_, concat(path_, ": ends at byte ", offset + got, ", expected ", size, " bytes from offset ",
                               offset, " (the file is truncated)"));
}

void InputFile::prefetch(uint64_t offset, size_t size) const {
  if (remote_) remote_->prefetch(offset, size);
}

uint32_t crc32c_of(const InputFile& file) {
  constexpr uint64_t kChunkBytes = uint64_t{1} << 20;
  std::vector<char> chunk(std::min(kChunkBytes, file.size()));
  uint32_t crc = 0;
  for (uint64_t offset = 0; offset < file.size(); offset += chunk.size()) {
    const uint64_t size = std::min<uint64_t>(chunk.size(), file.size() - offset);
    file.read(offset, chunk.data(), size);
    crc = crc32c(chunk.data(), size, crc);
  }
  return crc;
}

std::string read_text(const std::string& path, size_t limit, Fault fault) {
  const InputFile file(path, fault);
  if (file.size() > limit) throw Error(fault, concat(path, ": ", file.size(), " bytes, expected at most ", limit));
  std::string text(file.size(), '\0');
  file.read(0, text.data(), text.size());
  return text;
}

}  // namespace dtrain
