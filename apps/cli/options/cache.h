// Flag of the cache folder, and the options of data sets that use it.
#pragma once

#include "apps/cli/flags.h"
#include "dtrain/data/cache.h"

namespace dtrain::cli {

struct CacheFlags {
  int64_t max_unpacked_gb = 64;

  void declare(FlagSet& flags);
  // A stop request aborts opening the data.
  data::CacheOptions options() const;
};

}  // namespace dtrain::cli
