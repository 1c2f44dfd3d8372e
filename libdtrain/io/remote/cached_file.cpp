#include "libdtrain/io/remote/cached_file.h"

#include <algorithm>
#include <utility>

#include "dtrain/core/error.h"
#include "libdtrain/io/remote/sigv4.h"

namespace dtrain::remote {

CachedFile::CachedFile(std::shared_ptr<DiskCache> cache, const std::string& identity, uint64_t size, Fetch fetch)
    : cache_(std::move(cache)),
      object_(sha256_hex(concat(identity, "\n", size))),
      size_(size),
      fetch_(std::move(fetch)) {
  cache_->add_file(size_);
}

CachedFile::~CachedFile() { cache_->remove_file(size_); }

BlockId CachedFile::block_at(uint64_t offset) const {
  const uint64_t number = offset / kBlockBytes;
  return {object_, number, static_cast<size_t>(std::min<uint64_t>(kBlockBytes, size_ - number * kBlockBytes))};
}

bool CachedFile::read(uint64_t offset, std::span<char> into) const {
  return cache_->read(block_at(offset), offset % kBlockBytes, into);
}

void CachedFile::read_or_fetch(uint64_t offset, std::span<char> into, bool once) const {
  const BlockId block = block_at(offset);
  if (cache_->keeps(block)) {
    cache_->read_or_fetch(block, offset % kBlockBytes, into,
                          [&](std::span<char> bytes) { fetch_(block.number * kBlockBytes, bytes, once); });
    return;
  }
  fetch_(offset, into, once);
  cache_->count_fetched(into.size());
}

bool CachedFile::has(uint64_t offset, size_t size) const {
  for (uint64_t at = offset; at < offset + size; at = (at / kBlockBytes + 1) * kBlockBytes)
    if (!cache_->has(block_at(at))) return false;
  return true;
}

}  // namespace dtrain::remote
