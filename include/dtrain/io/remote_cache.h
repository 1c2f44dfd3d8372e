// The disk cache of remote files: blocks of s3:// and https:// files in a folder of bounded size.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace dtrain {

struct RemoteCacheOptions {
  std::string directory{};  // blocks are in its folder remote-blocks/, which processes of one user share
  uint64_t max_bytes = 0;   // of all blocks, also of earlier runs; 0: no cache
  // Called at most once, from any thread: why the cache is not used any more, such as a full disk.
  std::function<void(const std::string&)> notice{};
};

// Of this process.
struct RemoteCacheStats {
  uint64_t bytes_from_disk = 0;
  uint64_t bytes_fetched = 0;    // from servers, by files that the cache applies to
  uint64_t damaged_blocks = 0;   // found on the disk, and fetched again
  uint64_t unstored_blocks = 0;  // fetched, but not kept: the folder was locked for too long, or cannot be written
};

// Sets the cache of files that are opened from now on. Their order of reads and contents are as without it. Throws
// Error(Fault::config) for a folder that is a file or another user's; a folder that cannot be written is a notice.
void set_remote_cache(RemoteCacheOptions options);
// Zero without a cache.
RemoteCacheStats remote_cache_stats();

}  // namespace dtrain
