// Streams of gzip bytes: unpacking from a file, packing into one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "libdtrain/io/atomic_file.h"
#include "libdtrain/io/input_file.h"

namespace dtrain {

// The unpacked bytes of a gzip file of one or more members.
class GzipReader {
 public:
  explicit GzipReader(const InputFile& file);
  ~GzipReader();
  // Up to `size` bytes; fewer only at the end, or where fault() says what is wrong with the stream.
  size_t read(void* to, size_t size);
  // "truncated gzip stream", ...; null while all is well.
  const char* fault() const { return fault_; }

 private:
  struct ZlibStream;
  bool refill();
  void member_ended();

  const InputFile& file_;
  std::unique_ptr<ZlibStream> stream_;
  const char* fault_ = nullptr;
};

// Packs into `file` as one member without name or time, so that equal input gives equal bytes.
class GzipWriter {
 public:
  explicit GzipWriter(AtomicFile& file);
  ~GzipWriter();
  void write(const void* data, size_t size) { deflate(data, size, false); }
  void finish() { deflate(nullptr, 0, true); }

 private:
  struct ZlibStream;
  void deflate(const void* data, size_t size, bool last);

  AtomicFile& file_;
  std::unique_ptr<ZlibStream> stream_;
};

}  // namespace dtrain
