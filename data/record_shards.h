// RecordShards: the records of an ordered family of TFRecord files, numbered from 0 through all of them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/cache.h"
#include "data/dataset.h"
#include "data/record_index.h"

namespace dtrain::data {

// Reading is safe from many threads.
class RecordShards {
 public:
  // Opens and indexes the files, several at a time. See RecordIndex and plain_record_file for the cache.
  RecordShards(const std::vector<std::string>& paths, const CacheOptions& cache);

  uint64_t size() const { return begins_.back(); }
  // First record of each file, and size() at the end.
  const std::vector<uint64_t>& begins() const { return begins_; }
  RecordLocation locate(uint64_t record) const;
  // Damage that hides the rest of a file.
  const std::vector<std::string>& faults() const { return faults_; }
  // Ordered names and sizes, a line each.
  std::string identity() const;
  // The same with the number of records of each file and a checksum of them.
  std::string contents() const;

  // The bytes of a record, both checksums verified; they live in `buffer` or with the records that are kept. Throws
  // RecordError, and Error(Fault::data) where the file has been replaced.
  std::span<const std::byte> read(uint64_t record, std::vector<std::byte>& buffer) const;

 private:
  struct Shard {
    std::string name;        // as found
    uint64_t bytes = 0;      // as found
    std::string plain_path;  // the same, or an unpacked copy
    uint64_t plain_bytes = 0;
    std::unique_ptr<RecordFile> file;  // null where so many files cannot be kept open
    RecordIndex index;
  };
  class Kept;
  const Shard& shard_of(uint64_t record) const;
  std::span<const std::byte> read_file(uint64_t record, std::vector<std::byte>& buffer) const;

  std::vector<Shard> shards_;
  std::vector<uint64_t> begins_{0};
  std::vector<std::string> faults_;
  bool first_only_ = false;
  std::shared_ptr<Kept> kept_;  // null: none are
};

}  // namespace dtrain::data
