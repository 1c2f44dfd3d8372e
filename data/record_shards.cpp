#include "dtrain/data/record_shards.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <iomanip>
#include <mutex>
#include <sstream>
#include <utility>

#include "data/kept_records.h"
#include "data/open_files.h"
#include "data/parallel.h"
#include "data/unpacked_file.h"
#include "dtrain/io/remote_path.h"

namespace dtrain::data {

RecordShards::RecordShards(const std::vector<std::string>& paths, const CacheOptions& cache)
    : shards_(paths.size()),
      first_only_(cache.first_record_only),
      kept_(cache.keeps_records ? std::make_shared<KeptRecords>() : nullptr) {
  // Remote files share connections and take no file descriptors.
  const auto local_files = static_cast<size_t>(std::ranges::count_if(paths, std::not_fn(is_remote)));
  const bool keep = can_keep_open(local_files);
  is_remote_ = local_files < paths.size();
  std::mutex mutex;
  uint64_t opened = 0;
  for_each_in_parallel(paths.size(), [&](size_t i) {
    if (cache.stop && cache.stop()) throw Error(Fault::resource, "a stop was requested while data was opened");
    Shard& shard = shards_[i];
    shard.name = std::filesystem::path(paths[i]).filename().string();
    shard.plain_path = plain_record_file(paths[i], cache);
    auto file = std::make_unique<RecordFile>(shard.plain_path);
    shard.plain_bytes = file->size();
    shard.bytes = shard.plain_path == paths[i] ? shard.plain_bytes : InputFile(paths[i]).size();
    shard.index = RecordIndex::open(*file, cache.directory);
    if (keep) shard.file = std::move(file);
    if (!cache.progress) return;
    const std::lock_guard lock(mutex);
    cache.progress(++opened, paths.size());
  });
  for (const Shard& shard : shards_) {
    begins_.push_back(begins_.back() + shard.index.size());
    if (!shard.index.fault().empty()) faults_.push_back(shard.index.fault());
  }
}

const RecordShards::Shard& RecordShards::shard_of(uint64_t record) const {
  DT_CHECK(record < size(), "record ", record, " of a data set of ", size());
  return shards_[std::upper_bound(begins_.begin(), begins_.end(), record) - begins_.begin() - 1];
}

RecordLocation RecordShards::locate(uint64_t record) const {
  if (first_only_) record = 0;
  const Shard& shard = shard_of(record);
  const uint64_t index = record - begins_[&shard - shards_.data()];
  return {shard.plain_path, shard.index.offset(index), index};
}

std::string RecordShards::identity() const {
  std::string lines;
  for (const Shard& shard : shards_) lines += concat(shard.name, " ", shard.bytes, "\n");
  return first_only_ ? lines + "the first record for all\n" : lines;
}

std::string RecordShards::contents() const {
  std::ostringstream lines;
  for (const Shard& shard : shards_)
    lines << shard.name << ": " << shard.bytes << " bytes, " << shard.index.size() << " records, checksum " << std::hex
          << std::setw(8) << std::setfill('0') << shard.index.checksum() << std::dec << '\n';
  return lines.str();
}

std::span<const std::byte> RecordShards::read(uint64_t record, std::vector<std::byte>& buffer) const {
  if (first_only_) record = 0;
  if (!kept_) return read_file(record, buffer);
  const auto kept = kept_->find(record);
  return kept ? *kept : kept_->keep(record, read_file(record, buffer));
}

void RecordShards::prefetch(uint64_t record) const {
  if (kept_ && kept_->find(record)) return;
  const Shard& shard = shard_of(record);
  const uint64_t index = record - begins_[&shard - shards_.data()];
  if (shard.file) shard.file->prefetch(shard.index.offset(index), shard.index.length(index));
}

std::span<const std::byte> RecordShards::read_file(uint64_t record, std::vector<std::byte>& buffer) const {
  const Shard& shard = shard_of(record);
  const uint64_t index = record - begins_[&shard - shards_.data()];
  const uint64_t offset = shard.index.offset(index), length = shard.index.length(index);
  if (shard.file) return shard.file->read_record_at(offset, length, index, buffer);
  const RecordFile file(shard.plain_path);
  if (file.size() != shard.plain_bytes)
    throw Error(Fault::data, concat("the file has changed from ", shard.plain_bytes, " to ", file.size(),
                                    " bytes since it was opened"));
  return file.read_record_at(offset, length, index, buffer);
}

}  // namespace dtrain::data
