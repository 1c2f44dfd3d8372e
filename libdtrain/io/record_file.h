// TFRecord files: framing, checksums, sequential and random access, plain and gzip.
//   record = u64 length | u32 masked CRC-32C of the length | length bytes | u32 masked CRC-32C of the bytes   (LE)
// A file is a concatenation of records; an empty one has none. (TensorFlow, "TFRecord and tf.train.Example", file
// format)
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

#include "libdtrain/io/atomic_file.h"
#include "libdtrain/io/input_file.h"

namespace dtrain {

inline constexpr uint64_t kRecordHeader = 12, kRecordFooter = 4;  // bytes around a record's own
inline constexpr uint64_t kMaxRecordBytes = uint64_t{256} << 20;  // default limit of one record

enum class Compression : uint8_t { none, gzip };

// A bad record. The message names the file, byte offset, record number, what is wrong and what to do.
class RecordError : public Error {
 public:
  RecordError(const std::string& message, uint64_t offset, uint64_t index, bool rest_lost)
      : Error(Fault::data, message), offset_(offset), index_(index), rest_lost_(rest_lost) {}
  uint64_t offset() const { return offset_; }  // where the record's header is
  uint64_t index() const { return index_; }    // records before it in the file
  // True where the length itself cannot be trusted, so that no later record of the file can be found.
  bool rest_lost() const { return rest_lost_; }

 private:
  uint64_t offset_, index_;
  bool rest_lost_;
};

struct Record {
  std::span<const std::byte> bytes;
  uint64_t offset = 0;  // where its header is; in the unpacked stream where the file is gzip
  uint64_t index = 0;   // records before it
};

// Front to back, every checksum verified. A length is believed only after its own checksum holds, and memory is taken
// only for bytes that are there. Compression is found out from the first bytes.
class RecordReader {
 public:
  explicit RecordReader(const std::string& path, uint64_t max_record_bytes = kMaxRecordBytes);
  ~RecordReader();

  // The next record, whose bytes stay valid until the next call; none at the end. Throws RecordError; a caller that
  // wants to skip bad records calls again: it gets the record after the bad one, or none where the rest is lost.
  std::optional<Record> next();

  const std::string& path() const;
  Compression compression() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// From the header of a record; none where its checksum fails.
std::optional<uint64_t> record_length(std::span<const std::byte, kRecordHeader> header);

// Random access to a plain file; every function may be called from many threads.
class RecordFile {
 public:
  // Throws Error(Fault::data) for a gzip file, naming the way out.
  explicit RecordFile(const std::string& path, uint64_t max_record_bytes = kMaxRecordBytes);
  const std::string& path() const { return file_.path(); }
  uint64_t size() const { return file_.size(); }

  // Length of the record whose header is at `offset`, from its verified header; the next one is at
  // offset + kRecordHeader + length + kRecordFooter. `index` is for the message. Throws RecordError.
  uint64_t length_at(uint64_t offset, uint64_t index) const;
  // The checksum of the `length` bytes of that record as the file states it: nothing but read_record_at looks at the
  // bytes.
  uint32_t stated_crc_at(uint64_t offset, uint64_t length) const;
  // The record of `length` bytes (known from an index) at `offset`, both checksums verified, in one read into `buffer`,
  // which is grown as needed and holds the result. Throws RecordError.
  std::span<const std::byte> read_record_at(uint64_t offset, uint64_t length, uint64_t index,
                                            std::vector<std::byte>& buffer) const;

 private:
  InputFile file_;
  uint64_t max_record_bytes_;
};

// What stands before and after a record's own bytes.
class RecordFrame {
 public:
  explicit RecordFrame(std::span<const std::byte> record);
  std::string_view header() const { return {header_.data(), header_.size()}; }
  std::string_view footer() const { return {footer_.data(), footer_.size()}; }

 private:
  std::array<char, kRecordHeader> header_;
  std::array<char, kRecordFooter> footer_;
};

// Writes a file that appears under its name when finish() returns, and not at all before. The bytes depend on the
// records and on `compression` only.
class RecordWriter {
 public:
  explicit RecordWriter(const std::string& path, Compression compression = Compression::none,
                        FileSystem& files = system_files());
  ~RecordWriter();

  void append(std::span<const std::byte> record);
  void append(std::string_view record) { append(std::as_bytes(std::span(record))); }
  // Flushes, syncs and names the file. Throws Error(Fault::resource).
  void finish();
  // Of the whole file, once it is finished.
  uint64_t bytes() const;
  uint32_t crc() const;  // CRC-32C

  uint64_t records() const;
  uint64_t offset() const;  // where the next record's header is, in the unpacked stream

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dtrain
