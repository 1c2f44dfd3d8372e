#include "data/new_shards.h"

#include <filesystem>

#include "dtrain/io/atomic_file.h"
#include "dtrain/io/record_file.h"

namespace dtrain::data {
namespace {

constexpr size_t kMaxSourceBytes = size_t{64} << 20;

constexpr const char* kLock = "lock";
constexpr const char* kSource = "source";  // ShardOptions::source
constexpr const char* kDone = "done";      // manifest of completed shards

void write_whole(FileSystem& files, const std::string& path, const std::string& text) {
  AtomicFile file(path, files);
  file.write(text);
  file.commit();
}

}  // namespace

std::vector<std::string> names_in(const std::string& directory) try {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) names.push_back(entry.path().filename());
  return names;
} catch (const std::filesystem::filesystem_error& error) {
  throw Error(Fault::resource, concat(directory, ": cannot be listed: ", error.code().message()));
}

NewShards::NewShards(FileSystem& files, const ShardOptions& options)
    : files_(files),
      directory_(options.directory),
      source_(options.source),
      skips_bad_records_(options.skips_bad_records) {
  std::error_code unknown;
  make_directories(files, directory_);
  DT_CHECK(!std::filesystem::is_symlink(path_, unknown), path_,
           ": is a link, expected a folder of unfinished shards; move it away");
  make_directories(files, path_);
  lock_.emplace(path_ + "/" + kLock);
  const bool is_continued = has_source();
  if (std::filesystem::exists(path_ + "/" + kShardManifest, unknown)) {
    put_in_place();
    finished_ = is_continued;
  } else if (is_continued) {
    find_done();
  }
  for (const std::string& name : names_in(path_))
    if (!is_kept(name)) require_success(files_.unlink(path_ + "/" + name), "unlink", path_ + "/" + name);
  if (!source_.empty() && done_.empty()) write_whole(files_, path_ + "/" + kSource, source_);
}

NewShards::~NewShards() {
  if (!complete_ && done_.empty()) remove_files(files_, path_);
}

void NewShards::add(const std::string& name, const ShardFacts& facts, const std::vector<BadRecord>& skipped) {
  if (!skipped.empty()) {
    skipped_[name] = skipped;
    write_skipped();
  }
  if (source_.empty()) return;
  done_[name] = facts;
  write_whole(files_, path_ + "/" + kDone, to_text(done_));
}

void NewShards::commit(const ShardManifest& manifest) {
  std::error_code unknown;
  const auto has_list = [&](const std::string& folder) {
    return std::filesystem::exists(folder + "/" + kSkippedFile, unknown);
  };
  // A skip list of another shard set would be wrong for this one.
  if (skips_bad_records_ || has_list(directory_) || has_list(path_)) write_skipped();
  write_whole(files_, path_ + "/" + kShardManifest, to_text(manifest));
  put_in_place();
  done_.clear();
}

// Whether the staged shards have the same source.
bool NewShards::has_source() const {
  std::error_code unknown;
  const std::string path = path_ + "/" + kSource;
  return !source_.empty() && std::filesystem::exists(path, unknown) && read_text(path, kMaxSourceBytes) == source_;
}

void NewShards::write_skipped() { write_whole(files_, path_ + "/" + kSkippedFile, to_json(skipped_)); }

// Reuses no shard if the manifest or the skip list is unreadable, and none with skipped records if skipping is
// disabled.
void NewShards::find_done() try {
  std::error_code unknown;
  SkippedRecords skipped = read_skipped(path_ + "/" + kSkippedFile);
  for (const auto& [name, facts] : read_shard_manifest_file(path_ + "/" + kDone).value_or(ShardManifest()))
    if (std::filesystem::file_size(path_ + "/" + name, unknown) == facts.bytes &&
        (skips_bad_records_ || !skipped.contains(name)))
      done_[name] = facts;
  std::erase_if(skipped, [&](const auto& entry) { return !done_.contains(entry.first); });
  skipped_ = std::move(skipped);
} catch (const Error&) {
}

bool NewShards::is_kept(const std::string& name) const {
  return name == kLock || done_.contains(name) ||
         (!done_.empty() && (name == kSource || name == kDone || name == kSkippedFile));
}

// The manifest moves last; its place shows whether all shards have moved.
void NewShards::put_in_place() {
  complete_ = true;
  for (const std::string& name : names_in(path_))
    if (!split_of_shard(name).empty() || name == kSkippedFile) move(name);
  require_success(files_.sync_directory(directory_), "fsync", directory_);
  move(kShardManifest);
  require_success(files_.sync_directory(directory_), "fsync", directory_);
  complete_ = false;
}

void NewShards::move(const std::string& name) {
  require_success(files_.rename(path_ + "/" + name, directory_ + "/" + name), "rename to", directory_ + "/" + name);
}

}  // namespace dtrain::data
