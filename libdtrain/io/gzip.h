// gzip streams: decompression from a file, compression into a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "dtrain/io/atomic_file.h"
#include "dtrain/io/input_file.h"

namespace dtrain {

// Decompressed stream of a gzip file with one or more members.
class GzipReader {
 public:
  explicit GzipReader(const InputFile& file);
  ~GzipReader();
  // Reads up to `size` bytes; fewer only at the end, or on an error reported by fault().
  size_t read(void* to, size_t size);
  // Error such as "truncated gzip stream"; null if none.
  const char* fault() const { return fault_; }

 private:
  struct ZlibStream;
  bool refill();
  void member_ended();

  const InputFile& file_;
  std::unique_ptr<ZlibStream> stream_;
  const char* fault_ = nullptr;
};

// Compresses into `file` as one member without name and time: deterministic output.
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
