// The flag about the cache folder, and what programs keep there.
#pragma once

#include "apps/cli/flags.h"
#include "data/cache.h"

namespace dtrain::cli {

struct CacheFlags {
  int64_t max_unpacked_gb = 64;

  void declare(FlagSet& flags);
  // A request to stop ends the opening of data.
  data::CacheOptions options() const;
};

}  // namespace dtrain::cli
