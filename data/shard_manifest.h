// Manifest of a data set's shards: names, sizes and checksums in a hidden file beside them, which TFRecord readers
// ignore. Optional for readers.
//   dtrain shards, version 1
//   train-00000-of-00002 48123 90ab12cd           name, bytes and CRC-32C of a shard, sorted by name
//   crc32c 1234abcd                               of the lines above
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace dtrain::data {

inline constexpr const char* kShardManifest = ".shards";
// Staging folder for new shards. It holds a manifest from the completion of all shards until all are in place.
inline constexpr const char* kNewShards = ".shards.new";

struct ShardFacts {
  uint64_t bytes = 0;
  uint32_t crc = 0;
  bool operator==(const ShardFacts&) const = default;
};
std::string to_text(const ShardFacts& facts);  // "48123 bytes, CRC-32C 90ab12cd"
using ShardManifest = std::map<std::string, ShardFacts>;

std::string to_text(const ShardManifest& manifest);
// Manifest of the shards in `directory`; nothing if there is none. Throws Error(Fault::data) for a damaged one.
std::optional<ShardManifest> read_shard_manifest(const std::string& directory);
// The same for the file `path` of any name.
std::optional<ShardManifest> read_shard_manifest_file(const std::string& path);
// "train" for train-00000-of-00002 with any suffix; empty for other names.
std::string split_of_shard(const std::string& name);

// Throws Error(Fault::data) while new shards are being moved into place, or if the writer was killed then and old and
// new shards are mixed.
void require_all_in_place(const std::string& directory);

}  // namespace dtrain::data
