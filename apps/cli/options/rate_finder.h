// Flags and report of the learning-rate range test.
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
  // Prints a table of the points and the suggested learning rate; writes the file if requested: JSON if its name ends
  // in .json, else CSV. `writes`: whether this rank writes.
  void report(const RateSweep& sweep, Log& log, bool writes) const;
};

}  // namespace dtrain::cli
