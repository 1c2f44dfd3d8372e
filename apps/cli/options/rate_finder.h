// Flags about a search for a learning rate, and how its result is reported.
#pragma once

#include <cstdint>
#include <string>

#include "apps/cli/flags.h"
#include "apps/cli/log.h"
#include "libdtrain/run/rate_sweep.h"

namespace dtrain::cli {

struct RateFinderFlags {
  bool find_learning_rate = false;
  double find_learning_rate_from = 1e-8, find_learning_rate_to = 1;
  int64_t find_learning_rate_steps = 100;
  std::string find_learning_rate_file;

  void declare(FlagSet& flags);
  void check(const FlagSet& flags) const;
  RateSweepOptions options() const;
  // A table of the points and a line with the suggestion; and the file, where one is asked for: JSON where its name
  // ends with .json, else CSV. `writes`: this rank does.
  void report(const RateSweep& sweep, Log& log, bool writes) const;
};

}  // namespace dtrain::cli
