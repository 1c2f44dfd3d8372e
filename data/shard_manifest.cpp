#include "data/shard_manifest.h"

#include <charconv>
#include <cstdio>
#include <regex>
#include <sstream>
#include <string_view>

#include "dtrain/core/error.h"
#include "dtrain/io/input_file.h"
#include "dtrain/io/remote_path.h"
#include "libdtrain/io/crc32c.h"
#include "libdtrain/io/file_format.h"

namespace dtrain::data {
namespace {

constexpr const char* kTitle = "dtrain shards, version";  // and the number
constexpr size_t kMaxBytes = size_t{64} << 20;

std::string hex(uint32_t crc) {
  char digits[9];
  std::snprintf(digits, sizeof digits, "%08x", crc);
  return digits;
}

std::string last_line(std::string_view lines) {
  return concat("crc32c ", hex(crc32c(lines.data(), lines.size())), "\n");
}

// Of any format.
bool has_checksum(const std::string& text) {
  const size_t tail = text.rfind("crc32c ");
  return tail != text.npos && text.substr(tail) == last_line(std::string_view(text).substr(0, tail));
}

template <class T>
bool read_number(const std::string& text, int base, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

std::string to_text(const ShardFacts& facts) { return concat(facts.bytes, " bytes, CRC-32C ", hex(facts.crc)); }

std::string to_text(const ShardManifest& manifest) {
  std::string lines = concat(kTitle, " ", kShardManifestFormat.newest, "\n");
  for (const auto& [name, facts] : manifest) lines += concat(name, " ", facts.bytes, " ", hex(facts.crc), "\n");
  return lines + last_line(lines);
}

std::optional<ShardManifest> read_shard_manifest(const std::string& directory) {
  return read_shard_manifest_file(concat(directory, "/", kShardManifest));
}

std::optional<ShardManifest> read_shard_manifest_file(const std::string& path) {
  if (!file_exists(path)) return std::nullopt;
  const std::string text = read_text(path, kMaxBytes);
  std::istringstream lines(text);
  ShardManifest manifest;
  std::string line, name, bytes, crc;
  std::getline(lines, line);
  if (const auto number = format_number(line, kTitle); number && has_checksum(text))
    require_readable(kShardManifestFormat, *number, path);
  while (std::getline(lines, line) && !line.starts_with("crc32c ")) {
    std::istringstream words(line);
    ShardFacts facts;
    if (words >> name >> bytes >> crc && read_number(bytes, 10, facts.bytes) && read_number(crc, 16, facts.crc))
      manifest[name] = facts;
  }
  // Valid only if it equals the serialisation of its contents byte for byte.
  if (to_text(manifest) != text)
    throw Error(Fault::data, concat(path, ": damaged; if its shards are as they should be, delete it"));
  return manifest;
}

std::string split_of_shard(const std::string& name) {
  static const std::regex kName("([^.].*)-[0-9]+-of-[0-9]+.*");
  std::smatch match;
  return std::regex_match(name, match, kName) ? match[1].str() : "";
}

void require_all_in_place(const std::string& directory) {
  const std::string folder = concat(directory, "/", kNewShards);
  if (file_exists(concat(folder, "/", kShardManifest)))
    throw Error(Fault::data, concat(directory, ": new shards are only partly in place, the others are in ", folder,
                                    "; wait for dtrain-data or, where it was killed, start it again as before"));
}

}  // namespace dtrain::data
