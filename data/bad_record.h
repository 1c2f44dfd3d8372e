// Records that no sound image could be made of, and the file that lists those which a data set does without.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "libdtrain/core/error.h"

namespace dtrain::data {

struct BadRecord {
  std::string file{};    // or the record of a file, or the member of an archive
  std::string reason{};  // "damaged image: Premature end of JPEG file"
  bool operator==(const BadRecord&) const = default;
};

// One image cannot be used; the others may be.
class BadRecordError : public Error {
 public:
  // A reason that begins with "<file>: " loses that.
  BadRecordError(const std::string& file, std::string_view reason) : BadRecordError(record_of(file, reason)) {}
  const BadRecord& record() const { return record_; }

 private:
  static BadRecord record_of(const std::string& file, std::string_view reason);
  explicit BadRecordError(const BadRecord& record)
      : Error(Fault::data, record.file + ": " + record.reason), record_(record) {}
  BadRecord record_;
};

// All of them, where a data set may not do without any.
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

// The records that shards do without, by the name of the shard.
using SkippedRecords = std::map<std::string, std::vector<BadRecord>>;

// The file in a data set's folder that lists them: {"skipped": [{"file": F, "reason": R, "shard": S}, ...]}. Files of
// another form than TFRecord have no shard.
inline constexpr const char* kSkippedFile = "skipped.json";
std::string to_json(const SkippedRecords& skipped);
// Those of the file `path`; none where it is not there. Throws Error(Fault::data) where it is damaged.
SkippedRecords read_skipped(const std::string& path);
std::vector<BadRecord> all_of(const SkippedRecords& skipped);

// What is wrong with an image that decoded with the loss of pixels `damage`, which must not be empty.
inline std::string damaged_image(std::string_view damage) { return concat("damaged image: ", damage); }

}  // namespace dtrain::data
