// Writing data sets: records of images in the ImageNet schema, and the shards that hold them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "data/bad_record.h"
#include "data/preprocess.h"
#include "libdtrain/io/file_system.h"

namespace dtrain::data {

// One labelled image, as a record of the ImageNet schema describes it.
struct ImageRecord {
  std::span<const std::byte> encoded{};  // an image of any ImageFormat
  std::string format{};                  // "JPEG" or "PNG"
  int width = 0, height = 0;
  int64_t label = 0;
  std::string synset{}, text{}, filename{};
  std::span<const Box> boxes{};  // all of its class
};

// The bytes of its tf.Example.
std::string image_example(const ImageRecord& image);

inline constexpr int64_t kMaxShards = 99999;  // their numbers have five digits

// A part of a data set: the records make(0) to make(count - 1), in shards of equal size.
struct Split {
  std::string name{};  // "train" or "validation": files are <name>-00000-of-00008
  int64_t shards = 1;
  uint64_t count = 0;
  // Called from many threads. Throws BadRecordError where one image cannot be used.
  std::function<std::string(uint64_t)> make{};
};

struct ShardOptions {
  std::string directory{};  // made if absent
  int64_t threads = 0;      // 0: one per available core
  // What the records are made of and how, in words: a call that fails or is killed leaves the shards that are complete
  // to the next call with the same words. Empty: it leaves nothing.
  std::string source{};
  // Leaves out the records whose `make` throws BadRecordError, and lists them in the file kSkippedFile beside the
  // shards. Else these records are collected while all others are made, and no shards are put in place.
  bool skips_bad_records = false;
  // Told how many shards an earlier call has left, where there are any.
  std::function<void(size_t)> resumed{};
};

// Writes splits of a data set; the bytes do not depend on `threads`. All shards are written beside the directory's own,
// into its folder kNewShards, and take the places of old ones when the last is complete: if anything fails before, the
// old ones stay. A process that is killed while they move leaves what require_all_in_place() knows, and the next call
// puts the rest in place. Splits that are not written keep their shards. `progress`, which may be empty, is called with
// the records of a split done so far, from one thread at a time. Returns the records that were left out. Throws
// BadRecordsError for those that may not be, the first other failure of `make` or `progress`, and Error where the
// directory holds another set of one of the splits or another process writes to it.
SkippedRecords write_shards(const ShardOptions& options, const std::vector<Split>& splits,
                            const std::function<void(const Split&, uint64_t)>& progress = {},
                            FileSystem& files = system_files());

// [0, count) in an order that depends on `seed` only.
std::vector<uint64_t> shuffled(uint64_t count, uint64_t seed);

}  // namespace dtrain::data
