#include "libdtrain/io/remote/block_file.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "dtrain/core/error.h"
#include "libdtrain/io/crc32c.h"

namespace dtrain::remote {
namespace {

constexpr std::string_view kBlockMagic = "DTBLK001";
constexpr size_t kChunkBytes = size_t{64} << 10;

size_t chunks_of(const BlockId& block) { return (block.bytes + kChunkBytes - 1) / kChunkBytes; }

std::string identity_of(const BlockId& block) {
  std::string text = concat(kBlockMagic, block.object);
  for (const uint64_t value : {block.number, uint64_t{block.bytes}})
    text.append(reinterpret_cast<const char*>(&value), sizeof value);
  return text;
}

bool read_all(int fd, char* to, size_t size, uint64_t offset) {
  for (size_t done = 0; done < size;) {
    const ssize_t got = ::pread(fd, to + done, size - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    done += static_cast<size_t>(got);
  }
  return true;
}

}  // namespace

size_t block_header_bytes(const BlockId& block) {
  return kBlockMagic.size() + block.object.size() + 2 * sizeof(uint64_t) + (chunks_of(block) + 1) * sizeof(uint32_t);
}

std::string block_header(const BlockId& block, std::span<const char> bytes) {
  std::string header = identity_of(block);
  const auto append = [&](uint32_t crc) { header.append(reinterpret_cast<const char*>(&crc), sizeof crc); };
  for (size_t begin = 0; begin < bytes.size(); begin += kChunkBytes)
    append(crc32c(bytes.data() + begin, std::min(kChunkBytes, bytes.size() - begin)));
  append(crc32c(header.data(), header.size()));
  return header;
}

std::optional<std::vector<uint32_t>> parse_block_header(std::string_view header, const BlockId& block) {
  const std::string identity = identity_of(block);
  if (header.size() != block_header_bytes(block) || !header.starts_with(identity)) return std::nullopt;
  uint32_t crc = 0;
  const size_t end = header.size() - sizeof crc;
  std::memcpy(&crc, header.data() + end, sizeof crc);
  if (crc != crc32c(header.data(), end)) return std::nullopt;
  std::vector<uint32_t> sums(chunks_of(block));
  std::memcpy(sums.data(), header.data() + identity.size(), sums.size() * sizeof crc);
  return sums;
}

bool read_block(int fd, const BlockId& block, size_t begin, std::span<char> into) {
  std::string header(block_header_bytes(block), '\0');
  if (!read_all(fd, header.data(), header.size(), 0)) return false;
  const auto sums = parse_block_header(header, block);
  if (!sums) return false;
  const auto chunk = std::make_unique_for_overwrite<char[]>(kChunkBytes);
  for (size_t done = 0; done < into.size();) {
    const size_t number = (begin + done) / kChunkBytes, first = number * kChunkBytes;
    const size_t bytes = std::min(kChunkBytes, block.bytes - first), skipped = begin + done - first;
    const size_t count = std::min(into.size() - done, bytes - skipped);
    // Whole chunks go to the caller without a copy.
    char* const to = count == bytes ? into.data() + done : chunk.get();
    if (!read_all(fd, to, bytes, header.size() + first) || crc32c(to, bytes) != (*sums)[number]) return false;
    if (to == chunk.get()) std::memcpy(into.data() + done, to + skipped, count);
    done += count;
  }
  return true;
}

}  // namespace dtrain::remote
