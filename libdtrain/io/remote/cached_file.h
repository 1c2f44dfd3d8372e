// CachedFile: reads of one remote file through the disk cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "libdtrain/io/remote/disk_cache.h"

namespace dtrain::remote {

class CachedFile {
 public:
  // Fetches bytes from the server; `once`: without retries.
  using Fetch = std::function<void(uint64_t offset, std::span<char> into, bool once)>;

  // `identity`: text that differs for other files and other contents.
  CachedFile(std::shared_ptr<DiskCache> cache, const std::string& identity, uint64_t size, Fetch fetch);
  ~CachedFile();
  CachedFile(const CachedFile&) = delete;
  CachedFile& operator=(const CachedFile&) = delete;

  // Both read a range within one block. The first is false if it is not on the disk.
  bool read(uint64_t offset, std::span<char> into) const;
  void read_or_fetch(uint64_t offset, std::span<char> into, bool once) const;
  // Whether the disk has all blocks of a range.
  bool has(uint64_t offset, size_t size) const;

 private:
  BlockId block_at(uint64_t offset) const;

  const std::shared_ptr<DiskCache> cache_;
  const std::string object_;
  const uint64_t size_;
  const Fetch fetch_;
};

}  // namespace dtrain::remote
