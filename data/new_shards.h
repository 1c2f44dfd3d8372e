// Staging folder for new shards of a data set. Private to data.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/shard_manifest.h"
#include "data/shards.h"
#include "dtrain/data/bad_record.h"
#include "libdtrain/io/file_lock.h"

namespace dtrain::data {

// Names of directory entries. Throws Error(Fault::resource).
std::vector<std::string> names_in(const std::string& directory);

// Staging folder while shards are written and moved; locked against other processes.
class NewShards {
 public:
  NewShards(FileSystem& files, const ShardOptions& options);
  ~NewShards();
  NewShards(const NewShards&) = delete;
  NewShards& operator=(const NewShards&) = delete;

  const std::string& path() const { return path_; }
  // Whether an earlier call with the same source completed all shards and they are in place.
  bool finished() const { return finished_; }
  // Shards completed by an earlier call.
  const ShardManifest& done() const { return done_; }
  // Records skipped in completed shards.
  const SkippedRecords& skipped() const { return skipped_; }

  // Registers a complete shard, which later calls can reuse. Not thread-safe.
  void add(const std::string& name, const ShardFacts& facts, const std::vector<BadRecord>& skipped);
  // Point of no return: the new shards replace the old ones from here on, even after a crash.
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
  bool complete_ = false;  // but not in place yet
  bool finished_ = false;
  const bool skips_bad_records_;
  ShardManifest done_;
  SkippedRecords skipped_;
};

}  // namespace dtrain::data
