// From $XDG_CACHE_HOME to the options of data sets.
#include "apps/cli/options/cache.h"

#include "apps/cli/environment.h"
#include "apps/cli/stop_signals.h"

namespace dtrain::cli {

void CacheFlags::declare(FlagSet& flags) {
  flags
      .add("max_unpacked_gb", max_unpacked_gb,
           "limit in GiB on the unpacked copies of gzip files in the cache folder, over all data sets", {1, 1 << 20})
      .may_differ_per_rank();
}

data::CacheOptions CacheFlags::options() const {
  return {.directory = cache_directory(),
          .max_unpacked_bytes = static_cast<uint64_t>(max_unpacked_gb) << 30,
          .stop = stop_requested};
}

}  // namespace dtrain::cli
