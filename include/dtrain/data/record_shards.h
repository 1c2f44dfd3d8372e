// RecordShards: records of an ordered list of TFRecord files, numbered consecutively from 0.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dtrain/data/cache.h"
#include "dtrain/data/dataset.h"
#include "dtrain/data/record_index.h"

namespace dtrain::data {

class KeptRecords;

// Thread-safe for reading.
class RecordShards {
 public:
  // Opens and indexes the files in parallel. See RecordIndex and plain_record_file for caching.
  explicit RecordShards(const std::vector<std::string>& paths, const CacheOptions& cache = {});

  uint64_t size() const { return begins_.back(); }
  // First record of each file, and size() at the end.
  const std::vector<uint64_t>& begins() const { return begins_; }
  RecordLocation locate(uint64_t record) const;
  // Damage that makes the rest of a file unreachable.
  const std::vector<std::string>& faults() const { return faults_; }
  // Ordered names and sizes, one line each.
  std::string identity() const;
  // The same with record counts and checksums.
  std::string contents() const;

  // Bytes of a record, with both checksums verified; they are in `buffer` or in the memory cache. Throws RecordError,
  // and Error(Fault::data) if the file has been replaced.
  std::span<const std::byte> read(uint64_t record, std::vector<std::byte>& buffer) const;
  // See Dataset::prefetch().
  void prefetch(uint64_t record) const;
  bool can_prefetch() const { return is_remote_ && !first_only_; }

 private:
  struct Shard {
    std::string name;        // at opening
    uint64_t bytes = 0;      // at opening
    std::string plain_path;  // the same path, or an unpacked copy
    uint64_t plain_bytes = 0;
    std::unique_ptr<RecordFile> file;  // null if too many files are open
    RecordIndex index;
  };
  const Shard& shard_of(uint64_t record) const;
  std::span<const std::byte> read_file(uint64_t record, std::vector<std::byte>& buffer) const;

  std::vector<Shard> shards_;
  std::vector<uint64_t> begins_{0};
  std::vector<std::string> faults_;
  bool first_only_ = false, is_remote_ = false;
  std::shared_ptr<KeptRecords> kept_;  // null: no memory cache
};

}  // namespace dtrain::data
