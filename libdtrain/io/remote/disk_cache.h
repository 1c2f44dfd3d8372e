// DiskCache: blocks of remote files on the disk, shared by the processes of a user.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "dtrain/io/remote_cache.h"
#include "libdtrain/io/remote/cache_folder.h"

namespace dtrain::remote {

// Thread-safe. A block is valid as a whole or absent: it is written to a part file, which is renamed. Blocks are
// verified by checksums at each read, so that none must be synced; damaged ones are fetched again.
class DiskCache {
 public:
  using Fetch = std::function<void(std::span<char>)>;  // reads the whole block

  // Throws as CacheFolder.
  explicit DiskCache(const RemoteCacheOptions& options, FileSystem& files = system_files());

  // Whether blocks of this kind are stored. Of more data than the cache can hold, random reads would replace each block
  // before it is read again: then a share of the blocks is kept, the same in all processes and epochs.
  bool keeps(const BlockId& block) const;
  bool has(const BlockId& block) const;
  // Copies bytes of the block from `begin` on, if it is on the disk and intact.
  bool read(const BlockId& block, size_t begin, std::span<char> into);
  // As read(); if the block is absent, fetches and stores it. One process fetches it, others wait for a while.
  void read_or_fetch(const BlockId& block, size_t begin, std::span<char> into, const Fetch& fetch);

  // Files that are open, whose total size keeps() compares with the cache's.
  void add_file(uint64_t bytes) { file_bytes_ += bytes; }
  void remove_file(uint64_t bytes) { file_bytes_ -= bytes; }

  void count_fetched(uint64_t bytes) { fetched_ += bytes; }
  RemoteCacheStats stats() const;

 private:
  class Part;
  bool open_part(Part& part, const BlockId& block);
  void store(Part& part, const BlockId& block, std::span<const char> bytes);
  void write_part(Part& part, const BlockId& block, std::span<const char> bytes);
  void give_up(const std::string& reason);

  FileSystem& files_;
  CacheFolder folder_;
  const std::function<void(const std::string&)> notice_;
  std::atomic<bool> writable_ = true;
  std::atomic<uint64_t> file_bytes_ = 0;
  std::atomic<uint64_t> from_disk_ = 0, fetched_ = 0, damaged_ = 0, unstored_ = 0;
};

}  // namespace dtrain::remote
