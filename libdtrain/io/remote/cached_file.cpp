#include "libdtrain/io/remote/cached_file.h"

#include <algorithm>
#include <utility>

#include "dtrain/core/error.h"
#include "libdtrain/io/remote/sigv4.h"

namespace dtrain::remote {
namespace {

constexpr uint64_t kBlocksAhead = 4;

}  // namespace

CachedFile::CachedFile(std::shared_ptr<DiskCache> cache, const std::string& identity, uint64_t size, Fetch fetch)
    : cache_(std::move(cache)),
      object_(sha256_hex(concat(identity, "\n", size))),
      size_(size),
      fetch_(std::move(fetch)) {
  cache_->add_file(size_);
}

CachedFile::~CachedFile() {
  cache_->look_ahead().cancel(this);
  cache_->remove_file(size_);
}

BlockId CachedFile::block_at(uint64_t offset) const {
  const uint64_t number = offset / kBlockBytes;
  return {object_, number, static_cast<size_t>(std::min<uint64_t>(kBlockBytes, size_ - number * kBlockBytes))};
}

bool CachedFile::read(uint64_t offset, std::span<char> into) const {
  return cache_->read(block_at(offset), offset % kBlockBytes, into);
}

void CachedFile::read_or_fetch(uint64_t offset, std::span<char> into) const {
  const BlockId block = block_at(offset);
  if (cache_->keeps(block)) return fetch_block(block, offset % kBlockBytes, into, /*once=*/false);
  fetch_(offset, into, false);
  cache_->count_fetched(into.size());
}

void CachedFile::fetch_block(const BlockId& block, size_t begin, std::span<char> into, bool once) const {
  cache_->read_or_fetch(block, begin, into,
                        [&](std::span<char> bytes) { fetch_(block.number * kBlockBytes, bytes, once); });
}

void CachedFile::look_ahead(uint64_t offset) const {
  for (uint64_t i = 0; i < kBlocksAhead && offset + i * kBlockBytes < size_; ++i) {
    const BlockId block = block_at(offset + i * kBlockBytes);
    if (!cache_->keeps(block) || cache_->has(block)) continue;
    cache_->look_ahead().add(this, [this, block] { fetch_block(block, 0, {}, /*once=*/true); });
  }
}

}  // namespace dtrain::remote
