// Files of the disk cache. Each has one block of a remote file, with checksums:
//   "DTBLK001" | 64 digits of the object | u64 number | u64 bytes | u32 CRC-32C of each 64 KiB | u32 CRC-32C of all
//   these | the bytes (little endian)
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dtrain::remote {

inline constexpr size_t kBlockBytes = size_t{1} << 20;

struct BlockId {
  std::string object{};  // SHA-256 in hexadecimal of the file's address, ETag and size
  uint64_t number = 0;   // the block begins at number * kBlockBytes
  size_t bytes = 0;      // at most kBlockBytes; fewer at the end of the file
};

size_t block_header_bytes(const BlockId& block);
std::string block_header(const BlockId& block, std::span<const char> bytes);
// The checksums of the block's chunks; nullopt if it is not the header of this block, or is damaged.
std::optional<std::vector<uint32_t>> parse_block_header(std::string_view header, const BlockId& block);

// Reads the bytes from `begin` on; false if the file is not this block, or these bytes are damaged.
bool read_block(int fd, const BlockId& block, size_t begin, std::span<char> into);

}  // namespace dtrain::remote
