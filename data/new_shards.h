// The folder beside a data set in which its new shards are written. Private to data.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/bad_record.h"
#include "data/shard_manifest.h"
#include "data/shards.h"
#include "libdtrain/io/file_lock.h"

namespace dtrain::data {

// Names of what a directory holds. Throws Error(Fault::resource).
std::vector<std::string> names_in(const std::string& directory);

// The folder of new shards, for as long as they are written and moved; nobody else's while this lives.
class NewShards {
 public:
  NewShards(FileSystem& files, const ShardOptions& options);
  ~NewShards();
  NewShards(const NewShards&) = delete;
  NewShards& operator=(const NewShards&) = delete;

  const std::string& path() const { return path_; }
  // Whether an earlier call with the same source has completed all shards, which are in their places now.
  bool finished() const { return finished_; }
  // The shards that an earlier call has left.
  const ShardManifest& done() const { return done_; }
  // The records that complete shards do without.
  const SkippedRecords& skipped() const { return skipped_; }

  // From here on the shard is there for a later call, too, if there is one. Not for several threads at a time.
  void add(const std::string& name, const ShardFacts& facts, const std::vector<BadRecord>& skipped);
  // From here on the new shards belong to the directory, whatever happens.
  void commit(const ShardManifest& manifest);

 private:
  bool has_source() const;
  void find_done();
  bool is_kept(const std::string& name) const;
  void write_skipped();
  void put_in_place();
  void move(const std::string& name);

  FileSystem& files_;
  const std::string directory_, source_, path_ = concat(directory_, "/", kNewShards);
  std::optional<FileLock> lock_;
  bool complete_ = false;  // and not yet in place
  bool finished_ = false;
  const bool skips_bad_records_;
  ShardManifest done_;
  SkippedRecords skipped_;
};

}  // namespace dtrain::data
