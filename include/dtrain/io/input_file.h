// InputFile: random-access reads of a regular file, of an object in S3, or of a file on a web server.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "dtrain/core/error.h"

namespace dtrain {

namespace remote {
class RemoteFile;
}

// `path` may be remote (dtrain/io/remote_path.h). Thread-safe. Uses pread instead of mmap: a truncated file or failing
// disk is an error with a path, not a SIGBUS. Failures throw Error(fault) naming the path, or Error(Fault::resource)
// for a lack of descriptors or memory. Refuses directories, FIFOs and devices.
class InputFile {
 public:
  explicit InputFile(std::string path, Fault fault = Fault::data);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  // As given, but of a URL without its query, which may be secret.
  const std::string& path() const { return path_; }
  // Size in bytes, when opened.
  uint64_t size() const { return size_; }
  // Time of modification in ns since 1970 when opened; of a remote file a hash of its ETag, time and size. Caches use
  // it to detect other contents.
  int64_t revision() const { return revision_; }
  // Reads up to `size` bytes from `offset`, fewer at the end of the file; returns their number.
  size_t read_some(uint64_t offset, void* to, size_t size) const;
  // Reads exactly `size` bytes; throws at the end of the file.
  void read(uint64_t offset, void* to, size_t size) const;
  // Hint that exactly these bytes will be read soon: of a remote file, a thread fetches them. Does not wait.
  void prefetch(uint64_t offset, size_t size) const;

 private:
  [[noreturn]] void fail(const char* call) const;  // from errno

  std::string path_;
  Fault fault_;
  int fd_ = -1;
  uint64_t size_ = 0;
  int64_t revision_ = 0;
  std::unique_ptr<const remote::RemoteFile> remote_;  // null for a local file
};

// CRC-32C of the whole file.
uint32_t crc32c_of(const InputFile& file);
// Content of a small file; throws if it is larger than `limit` bytes.
std::string read_text(const std::string& path, size_t limit, Fault fault = Fault::data);

}  // namespace dtrain
