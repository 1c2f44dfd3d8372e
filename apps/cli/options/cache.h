// Flags of the cache folder and of the disk cache, and the options of data sets that use it.
#pragma once

#include <string>

#include "apps/cli/flags.h"
#include "dtrain/data/cache.h"
#include "dtrain/io/remote_cache.h"

namespace dtrain::cli {

struct CacheFlags {
  int64_t max_unpacked_gb = 64;
  double data_cache_gb = 0;
  std::string data_cache_dir{};

  void declare(FlagSet& flags);
  // The flags of the disk cache, of programs that read remote data.
  void declare_remote(FlagSet& flags);
  // A stop request aborts opening the data.
  data::CacheOptions options() const;
  // Of set_remote_cache(), which a program calls before it opens data.
  RemoteCacheOptions remote_cache() const;
};

// Bytes that came from the disk cache and from servers, and damaged blocks; "" without remote data.
std::string remote_cache_summary(const RemoteCacheStats& stats);

}  // namespace dtrain::cli
