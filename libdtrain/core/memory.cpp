#include "dtrain/core/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "dtrain/core/error.h"

namespace dtrain {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
// Segment size for small requests: keeps system calls few.
constexpr size_t kSegment = size_t{32} << 20;

// Largest request: above any machine's memory, and safe to round up.
constexpr size_t kMost = SIZE_MAX / 2;

std::string mebibytes(size_t bytes) { return concat((bytes >> 20) + (bytes >> 19) % 2, " MiB"); }

}  // namespace

void require_address_space(const char* what) {
  void* const spare = mmap(nullptr, kSpareAddressSpace, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (spare == MAP_FAILED)
    throw Error(Fault::resource, concat(what, ": out of memory: less than ", mebibytes(kSpareAddressSpace),
                                        " of address space are left; raise what `ulimit -v` allows"));
  munmap(spare, kSpareAddressSpace);
}

void* HostAllocator::allocate(size_t bytes) {
  if (bytes > kMost) throw Error(Fault::resource, concat("out of host memory: ", mebibytes(bytes), " requested"));
  bytes = (std::max<size_t>(bytes, 1) + 4095) / 4096 * 4096;
  // Over-maps, then cuts to a huge-page boundary: the kernel backs only aligned 2 MiB ranges with huge pages.
  const bool huge = bytes >= kHugePage;
  const size_t mapped = bytes + (huge ? kHugePage : 0) + kSpareAddressSpace;
  void* raw = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED)
    throw Error(Fault::resource, concat("out of host memory: the system refused ", mebibytes(bytes)));
  char* start = static_cast<char*>(raw);
  size_t lead = 0;
  if (huge) {
    const auto address = reinterpret_cast<uintptr_t>(start);
    lead = (kHugePage - address % kHugePage) % kHugePage;
    if (lead) munmap(start, lead);
    start += lead;
  }
  munmap(start + bytes, mapped - lead - bytes);
  if (huge) madvise(start, bytes, MADV_HUGEPAGE);
  std::lock_guard lock(mutex_);
  stats_.in_use += bytes;
  stats_.reserved += bytes;
  stats_.peak_in_use = std::max(stats_.peak_in_use, stats_.in_use);
  ++stats_.system_calls;
  return start;
}

void HostAllocator::release(void* block, size_t bytes) noexcept {
  bytes = (std::max<size_t>(bytes, 1) + 4095) / 4096 * 4096;
  munmap(block, bytes);
  std::lock_guard lock(mutex_);
  stats_.in_use -= bytes;
  stats_.reserved -= bytes;
}

MemoryStats HostAllocator::stats() const {
  std::lock_guard lock(mutex_);
  return stats_;
}

// Segments are tiled by blocks, which find their neighbours by address.
struct CachingAllocator::Pool {
  struct Block {
    size_t bytes;
    bool free;
    char* segment;
  };
  std::unique_ptr<Allocator> system;
  Spare spare;
  mutable std::mutex mutex;
  std::map<char*, Block> blocks;
  std::set<std::pair<size_t, char*>> free_blocks;
  std::unordered_map<char*, size_t> segments;
  MemoryStats stats;

  // Largest blocks in use: "12 x 822 MiB, 3 x 411 MiB".
  std::string largest() const {
    constexpr size_t kNamed = 4;
    std::map<size_t, size_t, std::greater<>> counts;
    for (const auto& [start, block] : blocks)
      if (!block.free) ++counts[block.bytes];
    std::string text;
    size_t named = 0;
    for (auto it = counts.begin(); it != counts.end() && named < kNamed; ++it, ++named)
      text += concat(text.empty() ? "" : ", ", it->second, " x ", mebibytes(it->first));
    return text.empty() ? "none" : text;
  }

  void trim() {
    for (auto segment = segments.begin(); segment != segments.end();) {
      const auto [start, bytes] = *segment;
      const auto block = blocks.find(start);
      if (!block->second.free || block->second.bytes != bytes) {
        ++segment;
        continue;
      }
      free_blocks.erase({bytes, start});
      blocks.erase(block);
      segment = segments.erase(segment);
      stats.reserved -= bytes;
      system->release(start, bytes);
    }
  }

  [[noreturn]] void fail(size_t bytes, const std::string& why) const {
    throw Error(Fault::resource,
                concat("out of memory: ", mebibytes(bytes), " requested, ", mebibytes(stats.in_use),
                       " in use of a limit of ", mebibytes(stats.limit), ", ", mebibytes(stats.reserved - stats.in_use),
                       " free in pieces", why, "; the largest in use: ", largest(), "; use a smaller batch"));
  }

  void add_segment(size_t bytes) {
    if (bytes > stats.limit - stats.reserved) fail(bytes, "");
    char* start = nullptr;
    try {
      start = static_cast<char*>(system->allocate(bytes));
    } catch (const Error& error) {
      fail(bytes, concat("; ", error.what()));
    }
    segments[start] = bytes;
    blocks[start] = {bytes, true, start};
    free_blocks.insert({bytes, start});
    stats.reserved += bytes;
    ++stats.system_calls;
  }

  // Segment size for a request: shared for small ones if the limit allows.
  size_t segment_for(size_t bytes) const {
    if (spare == Spare::none) return bytes;
    if (bytes >= kSegment) return (bytes + kHugePage - 1) / kHugePage * kHugePage;
    return std::min(kSegment, std::max(bytes, stats.limit - stats.reserved));
  }

  void grow(size_t bytes) {
    try {
      add_segment(segment_for(bytes));
    } catch (const Error&) {
      const size_t reserved = stats.reserved;
      if (spare == Spare::give_back) trim();
      if (stats.reserved == reserved) throw;
      add_segment(segment_for(bytes));
    }
  }
};

CachingAllocator::CachingAllocator(std::unique_ptr<Allocator> system, size_t cap_bytes, Spare spare)
    : pool_(std::make_unique<Pool>()) {
  pool_->system = std::move(system);
  pool_->spare = spare;
  pool_->stats.limit = cap_bytes;
}

CachingAllocator::~CachingAllocator() {
  for (auto [start, bytes] : pool_->segments) pool_->system->release(start, bytes);
}

void* CachingAllocator::allocate(size_t bytes) {
  Pool& pool = *pool_;
  std::lock_guard lock(pool.mutex);
  if (bytes > kMost) pool.fail(bytes, "");
  bytes = std::max<size_t>(bytes, 1);
  if (pool.spare != Spare::none) bytes = align_up(bytes);
  auto best = pool.free_blocks.lower_bound({bytes, nullptr});
  if (best == pool.free_blocks.end()) {
    pool.grow(bytes);
    best = pool.free_blocks.lower_bound({bytes, nullptr});
  }
  char* start = best->second;
  pool.free_blocks.erase(best);
  Pool::Block& block = pool.blocks.at(start);
  block.free = false;
  if (const size_t rest = block.bytes - bytes) {
    block.bytes = bytes;
    pool.blocks[start + bytes] = {rest, true, block.segment};
    pool.free_blocks.insert({rest, start + bytes});
  }
  pool.stats.in_use += bytes;
  pool.stats.peak_in_use = std::max(pool.stats.peak_in_use, pool.stats.in_use);
  return start;
}

void CachingAllocator::release(void* pointer, size_t) noexcept {
  Pool& pool = *pool_;
  std::lock_guard lock(pool.mutex);
  auto it = pool.blocks.find(static_cast<char*>(pointer));
  it->second.free = true;
  pool.stats.in_use -= it->second.bytes;
  auto merge = [&pool](auto left, auto right) {
    pool.free_blocks.erase({right->second.bytes, right->first});
    pool.free_blocks.erase({left->second.bytes, left->first});
    left->second.bytes += right->second.bytes;
    pool.blocks.erase(right);
  };
  if (auto next = std::next(it);
      next != pool.blocks.end() && next->second.free && next->second.segment == it->second.segment)
    merge(it, next);
  if (it != pool.blocks.begin()) {
    auto previous = std::prev(it);
    if (previous->second.free && previous->second.segment == it->second.segment) {
      merge(previous, it);
      it = previous;
    }
  }
  pool.free_blocks.insert({it->second.bytes, it->first});
  if (pool.spare == Spare::none) pool.trim();
}

void CachingAllocator::trim() {
  std::lock_guard lock(pool_->mutex);
  pool_->trim();
}

void CachingAllocator::set_limit(size_t bytes) {
  std::lock_guard lock(pool_->mutex);
  pool_->stats.limit = std::max(bytes, pool_->stats.reserved);
}

MemoryStats CachingAllocator::stats() const {
  std::lock_guard lock(pool_->mutex);
  return pool_->stats;
}

}  // namespace dtrain
