// RecordIndex: offsets of the records in a TFRecord file, cached on disk.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dtrain/io/record_file.h"

namespace dtrain::data {

class RecordIndex {
 public:
  // Loads the index beside the file (.NAME.dtidx) or in `cache_directory` if it matches the file's size and
  // modification time; else scans the headers and stores the index at the first writable of the two places. Safe for
  // concurrent processes. Damaged and stale indices are rebuilt; the index of a damaged file is not stored. Empty
  // `cache_directory`: none.
  static RecordIndex open(const RecordFile& file, const std::string& cache_directory);
  // Reads all headers and stored checksums of `file`; read_record_at verifies the bodies.
  static RecordIndex scan(const RecordFile& file);

  uint64_t size() const { return offsets_.size() - 1; }
  // Byte offset of the header of record `i`.
  uint64_t offset(uint64_t i) const { return offsets_[i]; }
  // Bytes of record `i` without framing.
  uint64_t length(uint64_t i) const { return offsets_[i + 1] - offsets_[i] - kRecordHeader - kRecordFooter; }
  // CRC-32C of the lengths and stored checksums of all records; changes with the contents.
  uint32_t checksum() const { return checksum_; }
  // Why records after the last one are unreachable, with file, offset and record; empty if all are reachable.
  const std::string& fault() const { return fault_; }

 private:
  bool load(const std::string& path, uint64_t file_bytes, int64_t modified);
  std::string body(int64_t modified) const;  // of its file

  std::vector<uint64_t> offsets_{0};  // begin of each record, and end of the last one
  uint32_t checksum_ = 0;
  std::string fault_;
};

}  // namespace dtrain::data
