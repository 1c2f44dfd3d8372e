// From $XDG_CACHE_HOME to the options of data sets.
#include "apps/cli/options/cache.h"

#include <fmt/format.h>

#include "apps/cli/environment.h"
#include "apps/cli/messages.h"
#include "apps/cli/stop_signals.h"

namespace dtrain::cli {

void CacheFlags::declare(FlagSet& flags) {
  flags
      .add("max_unpacked_gb", max_unpacked_gb,
           "limit in GiB on the unpacked copies of gzip files in the cache folder, over all data sets", {1, 1 << 20})
      .may_differ_per_rank();
}

void CacheFlags::declare_remote(FlagSet& flags) {
  flags
      .add("data_cache_gb", data_cache_gb,
           "GiB of the disk cache of s3:// and https:// data, which processes of a host share; 0: no cache",
           {0, 1 << 20})
      .may_differ_per_rank();
  flags
      .add("data_cache_dir", data_cache_dir,
           "folder of the disk cache, on a local disk; default: the cache folder ($XDG_CACHE_HOME/dtrain or "
           "~/.cache/dtrain)")
      .may_differ_per_rank();
}

data::CacheOptions CacheFlags::options() const {
  return {.directory = cache_directory(),
          .max_unpacked_bytes = static_cast<uint64_t>(max_unpacked_gb) << 30,
          .stop = stop_requested};
}

RemoteCacheOptions CacheFlags::remote_cache() const {
  RemoteCacheOptions options{.directory = data_cache_dir.empty() ? cache_directory() : data_cache_dir,
                             .max_bytes = static_cast<uint64_t>(data_cache_gb * (int64_t{1} << 30)),
                             .notice = [](const std::string& text) { print_message("note", text); }};
  DT_CHECK(options.max_bytes == 0 || !options.directory.empty(),
           "--data_cache_gb: there is no cache folder, because neither XDG_CACHE_HOME nor HOME is set; give "
           "--data_cache_dir");
  DT_CHECK(data_cache_dir.empty() || options.max_bytes > 0,
           "--data_cache_dir needs --data_cache_gb, the size of the cache");
  return options;
}

std::string remote_cache_summary(const RemoteCacheStats& stats) {
  if (stats.bytes_from_disk + stats.bytes_fetched == 0) return "";
  constexpr double kMiB = 1 << 20;
  std::string text =
      fmt::format("disk cache of remote data: {:.1f} MiB from the disk, {:.1f} MiB fetched",
                  static_cast<double>(stats.bytes_from_disk) / kMiB, static_cast<double>(stats.bytes_fetched) / kMiB);
  if (stats.damaged_blocks > 0) text += fmt::format(", {} damaged blocks fetched again", stats.damaged_blocks);
  if (stats.unstored_blocks > 0) text += fmt::format(", {} blocks not stored", stats.unstored_blocks);
  return text;
}

}  // namespace dtrain::cli
