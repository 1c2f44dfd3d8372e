// What is kept of data sets, in memory and, between runs, in the cache folder, and the names it has there.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace dtrain::data {

struct CacheOptions {
  std::string directory{};  // for indices of read-only data and plain copies of gzip files; may be empty: none
  uint64_t max_unpacked_bytes = uint64_t{64} << 30;  // that all copies in it may take together
  bool keeps_records = false;                        // those that have been read stay in memory
  bool first_record_only = false;                    // each record that is read is the first one of the data set
  // Asked now and then while data is opened, from several threads: true ends the opening with an Error.
  std::function<bool()> stop{};
  // Told after each file of a data set that has been opened, from one thread at a time.
  std::function<void(uint64_t opened, uint64_t files)> progress{};
};

// A name for what is made of the file `path`: the file's own name for people, and its absolute path as a hash (64-bit
// FNV-1a).
std::string cached_name(const std::string& path);
// Nanoseconds since 1970 at which the file last changed. Throws Error(Fault::data).
int64_t modified_at(const std::string& path);

}  // namespace dtrain::data
