// Damaged records, and the file that lists the records skipped by a data set.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "dtrain/core/error.h"

namespace dtrain::data {

struct BadRecord {
  std::string file{};    // or "record N of FILE", or an archive member
  std::string reason{};  // "damaged image: Premature end of JPEG file"
  bool operator==(const BadRecord&) const = default;
};

// A single damaged image; the others may be usable.
class BadRecordError : public Error {
 public:
  // Strips a leading "<file>: " from the reason.
  BadRecordError(const std::string& file, std::string_view reason) : BadRecordError(record_of(file, reason)) {}
  const BadRecord& record() const { return record_; }

 private:
  static BadRecord record_of(const std::string& file, std::string_view reason);
  explicit BadRecordError(const BadRecord& record)
      : Error(Fault::data, record.file + ": " + record.reason), record_(record) {}
  BadRecord record_;
};

// All damaged images, for data sets that may not skip any.
class BadRecordsError : public Error {
 public:
  explicit BadRecordsError(std::vector<BadRecord> records)
      : Error(Fault::data, concat(records.size(), " images cannot be used, the first is ", records.front().file, ": ",
                                  records.front().reason)),
        records_(std::move(records)) {}
  const std::vector<BadRecord>& records() const { return records_; }

 private:
  std::vector<BadRecord> records_;
};

// Skipped records by shard name.
using SkippedRecords = std::map<std::string, std::vector<BadRecord>>;

// File in a data set's folder: {"skipped": [{"file": F, "reason": R, "shard": S}, ...]}. The shard is absent for
// formats other than TFRecord.
inline constexpr const char* kSkippedFile = "skipped.json";
std::string to_json(const SkippedRecords& skipped);
// Reads such a file; empty if it does not exist. Throws Error(Fault::data) if it is malformed.
SkippedRecords read_skipped(const std::string& path);
std::vector<BadRecord> all_of(const SkippedRecords& skipped);

// Reason for an image that decoded with lost pixels; `damage` is not empty.
inline std::string damaged_image(std::string_view damage) { return concat("damaged image: ", damage); }

}  // namespace dtrain::data
