#include "data/shards.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <filesystem>
#include <iterator>
#include <mutex>
#include <numeric>
#include <optional>
#include <regex>
#include <thread>

#include <fmt/format.h>

#include "data/new_shards.h"
#include "data/shard_manifest.h"
#include "dtrain/core/error.h"
#include "dtrain/core/rng.h"
#include "dtrain/data/example.h"
#include "dtrain/io/atomic_file.h"
#include "dtrain/io/record_file.h"
#include "libdtrain/core/cores.h"
#include "libdtrain/io/file_lock.h"

namespace dtrain::data {
namespace {

namespace fs = std::filesystem;

// Rejects shards of an earlier run with another count, which would be read together with the new ones. Removes partial
// shards of killed earlier versions.
void require_no_other_set(FileSystem& files, const std::string& directory, const Split& split) {
  const std::regex pattern(split.name + "-[0-9]+-of-([0-9]+)(.*)");
  const std::string of = fmt::format("{:05}", split.shards);
  std::vector<std::string> leftovers;
  for (const std::string& name : names_in(directory)) {
    std::smatch match;
    if (!std::regex_match(name, match, pattern)) continue;
    const std::string path = directory + "/" + name;
    if (is_temporary_name(name)) {
      leftovers.push_back(path);
      continue;
    }
    std::error_code unknown;
    const bool is_folder = fs::symlink_status(path, unknown).type() == fs::file_type::directory;
    DT_CHECK(match[1] == of && match[2].length() == 0 && !is_folder, directory, " holds ", name,
             " of another data set; remove it or choose another folder");
  }
  for (const std::string& path : leftovers) require_success(files.unlink(path), "unlink", path);
}

// Manifest entries of splits that are not rewritten.
ShardManifest manifest_of_others(const std::string& directory, const std::vector<Split>& splits) try {
  ShardManifest manifest = read_shard_manifest(directory).value_or(ShardManifest());
  for (const Split& split : splits)
    std::erase_if(manifest, [&](const auto& entry) { return split_of_shard(entry.first) == split.name; });
  return manifest;
} catch (const Error&) {
  return {};  // a damaged manifest has no valid entries
}

class SplitWriter {
 public:
  SplitWriter(FileSystem& files, NewShards& folder, const Split& split, bool skips_bad_records,
              const std::function<void(const Split&, uint64_t)>& progress)
      : files_(files),
        folder_(folder),
        done_before_(folder.done()),
        split_(split),
        skips_bad_records_(skips_bad_records),
        progress_(progress) {}

  // Adds its shards to `manifest`. Returns the bad records that make the split incomplete.
  std::vector<BadRecord> write(int64_t wanted_threads, ShardManifest& manifest) {
    {
      std::vector<std::jthread> threads;
      const auto wanted = wanted_threads > 0 ? wanted_threads : int64_t{usable_cores()};
      for (int64_t i = 0; i < std::min(wanted, split_.shards); ++i) threads.emplace_back([this] { work(); });
    }
    if (failure_) std::rethrow_exception(failure_);
    manifest.merge(manifest_);
    return all_of(bad_);
  }

 private:
  void work() {
    const auto shards = static_cast<uint64_t>(split_.shards);
    for (uint64_t shard = next_shard_++; shard < shards && !failed_; shard = next_shard_++) try {
        write_shard(shard, shards);
      } catch (...) {
        std::lock_guard lock(mutex_);
        if (!failure_) failure_ = std::current_exception();
        failed_ = true;
      }
  }

  void write_shard(uint64_t shard, uint64_t shards) {
    const std::string name = fmt::format("{}-{:05}-of-{:05}", split_.name, shard, shards);
    const uint64_t begin = split_.count * shard / shards, end = split_.count * (shard + 1) / shards;
    if (const auto before = done_before_.find(name); before != done_before_.end()) {
      std::lock_guard lock(mutex_);
      manifest_[name] = before->second;
      return tell(end - begin);
    }
    RecordWriter writer(concat(folder_.path(), "/", name), Compression::none, files_);
    std::vector<BadRecord> bad;
    for (uint64_t i = begin; i < end && !failed_; ++i) {
      try {
        writer.append(split_.make(i));
      } catch (const BadRecordError& error) {
        bad.push_back(error.record());
      }
      std::lock_guard lock(mutex_);
      tell(1);
    }
    if (failed_) return;
    if (!bad.empty() && !skips_bad_records_) {
      std::lock_guard lock(mutex_);
      bad_[name] = std::move(bad);
      return;
    }
    writer.finish();
    std::lock_guard lock(mutex_);
    manifest_[name] = {writer.bytes(), writer.crc()};
    folder_.add(name, manifest_[name], bad);
  }

  // Requires the mutex.
  void tell(uint64_t records) {
    done_ += records;
    if (progress_ && records > 0) progress_(split_, done_);
  }

  FileSystem& files_;
  NewShards& folder_;
  const ShardManifest done_before_;
  const Split& split_;
  const bool skips_bad_records_;
  const std::function<void(const Split&, uint64_t)>& progress_;
  std::atomic<uint64_t> next_shard_{0};
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  uint64_t done_ = 0;
  ShardManifest manifest_;
  SkippedRecords bad_;  // bad records that may not be skipped
  std::exception_ptr failure_;
};

}  // namespace

std::string image_example(const ImageRecord& image) {
  ExampleWriter example;
  example.int64("image/height", image.height);
  example.int64("image/width", image.width);
  example.bytes("image/colorspace", "RGB");
  example.int64("image/channels", 3);
  example.int64("image/class/label", image.label);
  example.bytes("image/class/synset", image.synset);
  example.bytes("image/class/text", image.text);
  for (const auto& [side, member] :
       {std::pair("xmin", &NormalizedBox::xmin), std::pair("xmax", &NormalizedBox::xmax),
        std::pair("ymin", &NormalizedBox::ymin), std::pair("ymax", &NormalizedBox::ymax)}) {
    std::vector<float> ends;
    for (const NormalizedBox& box : image.boxes) ends.push_back(box.*member);
    example.floats(concat("image/object/bbox/", side), ends);
  }
  example.int64s("image/object/bbox/label", std::vector<int64_t>(image.boxes.size(), image.label));
  example.bytes("image/format", image.format);
  example.bytes("image/filename", image.filename);
  example.bytes("image/encoded", {reinterpret_cast<const char*>(image.encoded.data()), image.encoded.size()});
  return example.take();
}

SkippedRecords write_shards(const ShardOptions& options, const std::vector<Split>& splits,
                            const std::function<void(const Split&, uint64_t)>& progress, FileSystem& files) {
  static const std::regex kName("[A-Za-z0-9][A-Za-z0-9_-]*");
  for (const Split& split : splits) {
    DT_CHECK(split.shards >= 1 && split.shards <= kMaxShards, split.shards, " shards asked for, expected 1 to ",
             kMaxShards);
    DT_CHECK(std::regex_match(split.name, kName), "split '", split.name, "': expected letters, digits, _ and -");
  }
  NewShards folder(files, options);
  if (folder.finished()) return read_skipped(concat(options.directory, "/", kSkippedFile));
  for (const Split& split : splits) require_no_other_set(files, options.directory, split);
  ShardManifest manifest = manifest_of_others(options.directory, splits);
  if (options.resumed && !folder.done().empty()) options.resumed(folder.done().size());
  std::vector<BadRecord> bad;
  for (const Split& split : splits) {
    SplitWriter writer(files, folder, split, options.skips_bad_records, progress);
    std::ranges::move(writer.write(options.threads, manifest), std::back_inserter(bad));
  }
  if (!bad.empty()) throw BadRecordsError(std::move(bad));
  folder.commit(manifest);
  return folder.skipped();
}

std::vector<uint64_t> shuffled(uint64_t count, uint64_t seed) {
  DT_CHECK(count < UINT32_MAX, count, " items are too many to shuffle");
  std::vector<uint64_t> order(count);
  std::iota(order.begin(), order.end(), uint64_t{0});
  RandomStream random(seed, 0);
  for (uint64_t i = count; i > 1; --i) std::swap(order[i - 1], order[random.below(static_cast<uint32_t>(i))]);
  return order;
}

}  // namespace dtrain::data
