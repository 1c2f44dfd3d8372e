// RecordIndex: where each record of a TFRecord file lies, kept on disk between runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libdtrain/io/record_file.h"

namespace dtrain::data {

class RecordIndex {
 public:
  // The index kept beside the file (as .NAME.dtidx) or in `cache_directory`, if it belongs to the file as it is now, by
  // size and time of change; else a scan of the headers, which is then kept at the first of the two places that can be
  // written. Several processes may do so at once. An index that is damaged or stale is made again, that of a damaged
  // file is not kept. `cache_directory` may be empty: none.
  static RecordIndex open(const RecordFile& file, const std::string& cache_directory);
  // Reads every header and stated checksum of `file`; bodies are for read_record_at to check.
  static RecordIndex scan(const RecordFile& file);

  uint64_t size() const { return offsets_.size() - 1; }
  // Where the header of record `i` begins.
  uint64_t offset(uint64_t i) const { return offsets_[i]; }
  // Bytes of record `i` without its frame.
  uint64_t length(uint64_t i) const { return offsets_[i + 1] - offsets_[i] - kRecordHeader - kRecordFooter; }
  // CRC-32C of the lengths and stated checksums of all records: another one where the contents are others.
  uint32_t checksum() const { return checksum_; }
  // Why the records after the last one cannot be reached, with file, offset and record; empty where all can.
  const std::string& fault() const { return fault_; }

 private:
  bool load(const std::string& path, uint64_t file_bytes, int64_t modified);
  void save(const std::string& path, int64_t modified) const;

  std::vector<uint64_t> offsets_{0};  // where each record begins, and where the last ends
  uint32_t checksum_ = 0;
  std::string fault_;
};

}  // namespace dtrain::data
