// Caching of data sets in memory and, between runs, in the cache folder.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace dtrain::data {

struct CacheOptions {
  std::string directory{};  // for indices of read-only data and unpacked gzip files; empty: no cache
  uint64_t max_unpacked_bytes = uint64_t{64} << 30;  // limit for all unpacked files in the folder
  bool keeps_records = false;                        // keep records in memory after the first read
  bool first_record_only = false;                    // every read returns the first record of the data set
  // Polled while data is opened, from several threads: true aborts opening with an Error.
  std::function<bool()> stop{};
  // Called after each opened file, from one thread at a time.
  std::function<void(uint64_t opened, uint64_t files)> progress{};
};

// Cache file name for the file `path`: its base name and a hash of its absolute path (64-bit FNV-1a).
std::string cached_name(const std::string& path);
// Modification time in nanoseconds since 1970. Throws Error(Fault::data).
int64_t modified_at(const std::string& path);

}  // namespace dtrain::data
