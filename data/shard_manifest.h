// Which shards belong together: names, sizes and checksums of a data set's shards, in a file beside them whose name
// begins with a dot, as readers of plain TFRecords do not look for it. A data set without one is read like any other.
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
// The folder beside the shards in which new ones are written. It holds a manifest from the moment on at which all of
// them are complete, until all are in their places.
inline constexpr const char* kNewShards = ".shards.new";

struct ShardFacts {
  uint64_t bytes = 0;
  uint32_t crc = 0;
  bool operator==(const ShardFacts&) const = default;
};
std::string to_text(const ShardFacts& facts);  // "48123 bytes, CRC-32C 90ab12cd"
using ShardManifest = std::map<std::string, ShardFacts>;

std::string to_text(const ShardManifest& manifest);
// The manifest of the shards in `directory`; none where there is no such file. Throws Error(Fault::data) where it is
// damaged.
std::optional<ShardManifest> read_shard_manifest(const std::string& directory);
// The same of the file `path`, which need not have that name.
std::optional<ShardManifest> read_shard_manifest_file(const std::string& path);
// "train" for train-00000-of-00002, whatever comes after it; empty for what is not the name of a shard.
std::string split_of_shard(const std::string& name);

// Throws Error(Fault::data) where new shards are being put in place, or were when their writer was killed: old and new
// ones are mixed.
void require_all_in_place(const std::string& directory);

}  // namespace dtrain::data
