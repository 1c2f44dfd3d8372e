// TFRecord files: framing, checksums, sequential and random access, plain and gzip.
//   record = u64 length | u32 masked CRC-32C of the length | length bytes | u32 masked CRC-32C of the bytes   (LE)
// A file is a concatenation of records, possibly empty. (TensorFlow, "TFRecord and tf.train.Example", file format)
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dtrain/io/atomic_file.h"
#include "dtrain/io/input_file.h"

namespace dtrain {

inline constexpr uint64_t kRecordHeader = 12, kRecordFooter = 4;  // framing bytes before and after the data
inline constexpr uint64_t kMaxRecordBytes = uint64_t{256} << 20;  // default limit of a record's length

enum class Compression : uint8_t { none, gzip };

// Corrupt record. The message names file, byte offset, record number, cause and remedy.
class RecordError : public Error {
 public:
  RecordError(const std::string& message, uint64_t offset, uint64_t index, bool rest_lost)
      : Error(Fault::data, message), offset_(offset), index_(index), rest_lost_(rest_lost) {}
  uint64_t offset() const { return offset_; }  // of the record's header
  uint64_t index() const { return index_; }    // of the record in the file
  // Whether the length is corrupt, so that no later record of the file can be located.
  bool rest_lost() const { return rest_lost_; }

 private:
  uint64_t offset_, index_;
  bool rest_lost_;
};

struct Record {
  std::span<const std::byte> bytes;
  uint64_t offset = 0;  // of the header; in the decompressed stream for gzip
  uint64_t index = 0;   // of the record in the file
};

// Sequential reader; verifies every checksum. Lengths are trusted only after their checksum, and memory grows with data
// actually read. Detects compression by the first bytes.
class RecordReader {
 public:
  explicit RecordReader(const std::string& path, uint64_t max_record_bytes = kMaxRecordBytes);
  ~RecordReader();

  // Next record, valid until the next call; nullopt at the end. Throws RecordError; to skip corrupt records, call
  // again: it continues after the corrupt record, or returns nullopt if the rest is lost.
  std::optional<Record> next();

  const std::string& path() const;
  Compression compression() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Length from a record's header; nullopt if its checksum fails.
std::optional<uint64_t> record_length(std::span<const std::byte, kRecordHeader> header);

// Random access to an uncompressed file; thread-safe.
class RecordFile {
 public:
  // Throws Error(Fault::data), with advice, for a gzip file.
  explicit RecordFile(const std::string& path, uint64_t max_record_bytes = kMaxRecordBytes);
  const std::string& path() const { return file_.path(); }
  uint64_t size() const { return file_.size(); }
  int64_t revision() const { return file_.revision(); }

  // Length of the record with its header at `offset`, checksum verified; the next header is at
  // offset + kRecordHeader + length + kRecordFooter. `index`: for messages. Throws RecordError.
  uint64_t length_at(uint64_t offset, uint64_t index) const;
  // Stored checksum of that record's `length` bytes; only read_record_at() verifies it.
  uint32_t stated_crc_at(uint64_t offset, uint64_t length) const;
  // Reads the record of `length` bytes (known from an index) at `offset` by one read into `buffer`, which grows as
  // needed, and verifies both checksums. Throws RecordError.
  std::span<const std::byte> read_record_at(uint64_t offset, uint64_t length, uint64_t index,
                                            std::vector<std::byte>& buffer) const;
  // Hint that read_record_at() will be called soon. See InputFile::prefetch.
  void prefetch(uint64_t offset, uint64_t length) const {
    file_.prefetch(offset, kRecordHeader + length + kRecordFooter);
  }

 private:
  InputFile file_;
  uint64_t max_record_bytes_;
};

// Header and footer of a record.
class RecordFrame {
 public:
  explicit RecordFrame(std::span<const std::byte> record);
  std::string_view header() const { return {header_.data(), header_.size()}; }
  std::string_view footer() const { return {footer_.data(), footer_.size()}; }

 private:
  std::array<char, kRecordHeader> header_;
  std::array<char, kRecordFooter> footer_;
};

// Writes a file atomically: it appears under its name in finish(). Output depends on the records and `compression`
// only.
class RecordWriter {
 public:
  explicit RecordWriter(const std::string& path, Compression compression = Compression::none,
                        FileSystem& files = system_files());
  ~RecordWriter();

  void append(std::span<const std::byte> record);
  void append(std::string_view record) { append(std::as_bytes(std::span(record))); }
  // Flushes, syncs and renames the file. Throws Error(Fault::resource).
  void finish();
  // Size of the finished file.
  uint64_t bytes() const;
  uint32_t crc() const;  // CRC-32C

  uint64_t records() const;
  uint64_t offset() const;  // of the next record's header, in the uncompressed stream

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dtrain
