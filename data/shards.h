// Writing data sets: records of images in the ImageNet schema, and the shards that hold them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace dtrain::data {

// One labelled image, as a record of the ImageNet schema describes it.
struct ImageRecord {
  std::span<const std::byte> encoded{};  // JPEG or PNG
  std::string format{};                  // "JPEG" or "PNG"
  int width = 0, height = 0;
  int64_t label = 0;
  std::string synset{}, text{}, filename{};
};

// The bytes of its tf.Example.
std::string image_example(const ImageRecord& image);

inline constexpr int64_t kMaxShards = 99999;  // their numbers have five digits

struct ShardOptions {
  std::string directory{};  // made if absent
  std::string split{};      // "train" or "validation": files are <split>-00000-of-00008
  int64_t shards = 1;
  int64_t threads = 0;  // 0: one per available core
};

// Writes records [0, count), record i being make(i), into shards of equal size; the bytes do not depend on `threads`. A
// shard appears under its name when it is complete. `make` is called from many threads; `progress` with records done so
// far, from one at a time. Throws the first failure of `make` or `progress`, leaving complete shards only, and Error
// where the directory holds another set of the same split.
void write_shards(const ShardOptions& options, uint64_t count, const std::function<std::string(uint64_t)>& make,
                  const std::function<void(uint64_t)>& progress);

// [0, count) in an order that depends on `seed` only.
std::vector<uint64_t> shuffled(uint64_t count, uint64_t seed);

}  // namespace dtrain::data
