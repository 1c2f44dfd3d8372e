// CacheFolder: the files of the disk cache. Processes share the folder; together they keep it below a size, and remove
// the blocks that were not read for the longest time.
//   <folder>/usage              bytes of all blocks as text; locked by flock() while blocks are counted or removed
//   <folder>/ab/cd...-7.block   block 7 of object "abcd..."
//   <folder>/ab/cd...-7.part    the same while a process fetches it, locked by flock() for as long
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "dtrain/io/file_system.h"
#include "libdtrain/io/remote/block_file.h"

namespace dtrain::remote {

// Thread-safe. A killed process leaves part files, which are overwritten or removed, and a usage that is too large by
// its last blocks, until blocks are removed next.
class CacheFolder {
 public:
  // Creates the folder, for this user alone; removes blocks of a larger cache. Throws Error(Fault::config) for a file
  // or another user's folder, Error(Fault::resource) if it cannot be written.
  CacheFolder(std::string path, uint64_t max_bytes, FileSystem& files);
  ~CacheFolder();
  CacheFolder(const CacheFolder&) = delete;
  CacheFolder& operator=(const CacheFolder&) = delete;

  const std::string& path() const { return path_; }
  uint64_t max_bytes() const { return max_bytes_; }
  std::string path_of(const BlockId& block) const;
  // Path of the part file, whose folder is created.
  std::string part_of(const BlockId& block) const;
  // Disk space of a block's file.
  static uint64_t disk_bytes(const BlockId& block);

  // Counts a block that will be stored, after removing others if necessary. False if that leaves no room, or another
  // process holds the lock for long. Throws Error(Fault::resource).
  bool reserve(const BlockId& block);

 private:
  bool make_room(uint64_t bytes);
  bool lock_usage();
  std::optional<uint64_t> stated_usage() const;
  uint64_t remove_oldest(uint64_t room);

  const std::string path_;
  const uint64_t max_bytes_;
  FileSystem& files_;
  int usage_fd_ = -1;
  std::mutex mutex_;  // of usage_fd_, whose lock is the process's
  std::chrono::steady_clock::time_point next_try_{};
};

// Locks the file by flock(); false if others hold it until `wait` has passed.
bool lock_within(int fd, std::chrono::milliseconds wait);

}  // namespace dtrain::remote
