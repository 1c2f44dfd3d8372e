#include "data/shards.h"

#include <atomic>
#include <exception>
#include <filesystem>
#include <mutex>
#include <numeric>
#include <regex>
#include <thread>

#include <fmt/format.h>

#include "data/example.h"
#include "libdtrain/core/cores.h"
#include "libdtrain/core/error.h"
#include "libdtrain/core/rng.h"
#include "libdtrain/io/atomic_file.h"
#include "libdtrain/io/record_file.h"

namespace dtrain::data {
namespace {

// Shards of an earlier run under another count would be read together with the new ones. What a killed run left half
// written is removed.
void prepare_folder(const ShardOptions& options) try {
  make_directories(system_files(), options.directory);
  const std::regex pattern(options.split + "-[0-9]+-of-([0-9]+)(.*)");
  const std::string of = fmt::format("{:05}", options.shards);
  std::vector<std::filesystem::path> leftovers;
  for (const auto& entry : std::filesystem::directory_iterator(options.directory)) {
    std::smatch match;
    const std::string name = entry.path().filename().string();
    if (!std::regex_match(name, match, pattern)) continue;
    if (is_temporary_name(name)) {
      leftovers.push_back(entry.path());
      continue;
    }
    DT_CHECK(match[1] == of && match[2].length() == 0, options.directory, " holds ", name,
             " of another data set; remove it or choose another folder");
  }
  for (const auto& path : leftovers) std::filesystem::remove(path);
} catch (const std::filesystem::filesystem_error& error) {
  throw Error(Fault::resource, concat(options.directory, ": cannot be prepared: ", error.code().message()));
}

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
  for (const char* side : {"xmin", "xmax", "ymin", "ymax"})
    example.floats(std::string("image/object/bbox/") + side, {});
  example.int64s("image/object/bbox/label", {});
  example.bytes("image/format", image.format);
  example.bytes("image/filename", image.filename);
  example.bytes("image/encoded", {reinterpret_cast<const char*>(image.encoded.data()), image.encoded.size()});
  return example.take();
}

void write_shards(const ShardOptions& options, uint64_t count, const std::function<std::string(uint64_t)>& make,
                  const std::function<void(uint64_t)>& progress) {
  DT_CHECK(options.shards >= 1 && options.shards <= kMaxShards, options.shards, " shards asked for, expected 1 to ",
           kMaxShards);
  prepare_folder(options);

  const auto shards = static_cast<uint64_t>(options.shards);
  std::atomic<uint64_t> next_shard{0};
  std::atomic<bool> failed{false};
  std::mutex mutex;
  uint64_t done = 0;
  std::exception_ptr failure;

  auto write_one = [&](uint64_t shard) {
    RecordWriter writer(concat(options.directory, "/", fmt::format("{}-{:05}-of-{:05}", options.split, shard, shards)));
    for (uint64_t i = count * shard / shards; i < count * (shard + 1) / shards && !failed; ++i) {
      writer.append(make(i));
      std::lock_guard lock(mutex);
      progress(++done);
    }
    if (!failed) writer.finish();
  };
  auto work = [&] {
    for (uint64_t shard = next_shard++; shard < shards && !failed; shard = next_shard++) try {
        write_one(shard);
      } catch (...) {
        std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
        failed = true;
      }
  };
  {
    const auto wanted = static_cast<uint64_t>(options.threads > 0 ? options.threads : usable_cores());
    std::vector<std::jthread> threads;
    for (uint64_t i = 0; i < std::min(wanted, shards); ++i) threads.emplace_back(work);
  }
  if (failure) std::rethrow_exception(failure);
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
