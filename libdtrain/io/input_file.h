// A regular file read by position.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "libdtrain/core/error.h"

namespace dtrain {

// Safe to read from many threads. Reading, not mapping: a file that shrinks or a disk that fails is then an error with
// a name, not a SIGBUS. Failures throw Error(fault) naming the path, or Error(Fault::resource) where descriptors or
// memory are used up; a directory, FIFO or device is refused.
class InputFile {
 public:
  explicit InputFile(std::string path, Fault fault = Fault::data);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const { return path_; }
  // In bytes, when it was opened.
  uint64_t size() const { return size_; }
  // Reads `size` bytes from `offset`, fewer where the file ends; returns how many.
  size_t read_some(uint64_t offset, void* to, size_t size) const;
  // Reads exactly `size` bytes; throws where the file ends before.
  void read(uint64_t offset, void* to, size_t size) const;

 private:
  [[noreturn]] void fail(const char* call) const;  // from errno

  std::string path_;
  Fault fault_;
  int fd_ = -1;
  uint64_t size_ = 0;
};

// CRC-32C of the whole file.
uint32_t crc32c_of(const InputFile& file);
// The whole of a small file; throws where it is larger than `limit` bytes.
std::string read_text(const std::string& path, size_t limit, Fault fault = Fault::data);

}  // namespace dtrain
