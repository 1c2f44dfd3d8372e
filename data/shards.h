// Writing of data sets: records in the ImageNet schema, and sharded TFRecords.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "dtrain/data/bad_record.h"
#include "dtrain/data/preprocess.h"
#include "dtrain/io/file_system.h"

namespace dtrain::data {

// Labelled image to serialise in the ImageNet schema.
struct ImageRecord {
  std::span<const std::byte> encoded{};  // any ImageFormat
  std::string format{};                  // "JPEG" or "PNG"
  int width = 0, height = 0;
  int64_t label = 0;
  std::string synset{}, text{}, filename{};
  std::span<const NormalizedBox> boxes{};  // all of the image's class
};

// Serialised tf.Example.
std::string image_example(const ImageRecord& image);

inline constexpr int64_t kMaxShards = 99999;  // numbers have five digits

// Split to write: records make(0) to make(count - 1), in shards of equal size.
struct Split {
  std::string name{};  // "train" or "validation": shards are <name>-00000-of-00008
  int64_t shards = 1;
  uint64_t count = 0;
  // Called from several threads. Throws BadRecordError for an unusable image.
  std::function<std::string(uint64_t)> make{};
};

struct ShardOptions {
  std::string directory{};  // created if absent
  int64_t threads = 0;      // 0: one per available core
  // Description of the input and options. After a failure, the next call with the same text reuses the completed
  // shards. Empty: no reuse.
  std::string source{};
  // Skips records whose `make` throws BadRecordError and lists them in kSkippedFile beside the shards. Else all such
  // records are collected, and no shards are put in place.
  bool skips_bad_records = false;
  // Called with the number of reused shards, if any.
  std::function<void(size_t)> resumed{};
};

// Writes splits of a data set; the bytes do not depend on `threads`. Shards are written to the staging folder
// kNewShards and replace old ones after the last is complete; on an earlier failure the old ones stay. If the process
// is killed while shards are moved, require_all_in_place() detects it and the next call completes the move. Other
// splits keep their shards. `progress` (optional) is called with the number of finished records of a split, from one
// thread at a time. Returns the skipped records. Throws BadRecordsError for bad records that may not be skipped, the
// first other exception of `make` or `progress`, and Error if the directory holds another set of shards of a split or
// another process writes to it.
SkippedRecords write_shards(const ShardOptions& options, const std::vector<Split>& splits,
                            const std::function<void(const Split&, uint64_t)>& progress = {},
                            FileSystem& files = system_files());

// [0, count) shuffled by `seed`.
std::vector<uint64_t> shuffled(uint64_t count, uint64_t seed);

}  // namespace dtrain::data
