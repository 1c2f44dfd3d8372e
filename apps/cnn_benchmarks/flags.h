// Flags of dtrain-cnn-benchmarks: tf_cnn_benchmarks' flags, with its names, types and defaults, and extensions.
#pragma once

#include <tuple>

#include "apps/cli/options/augment.h"
#include "apps/cli/options/benchmark_log.h"
#include "apps/cli/options/distribution.h"
#include "apps/cli/options/input.h"
#include "apps/cli/options/optimizer.h"
#include "apps/cli/options/performance.h"
#include "apps/cli/options/rate_finder.h"
#include "apps/cli/options/recipe.h"
#include "apps/cli/options/tf_only.h"
#include "apps/cli/options/training.h"
#include "apps/cnn_benchmarks/mode_flags.h"
#include "apps/cnn_benchmarks/model_flags.h"
#include "apps/ssd/flags.h"

namespace dtrain::cnn_benchmarks {

// Values of the supported flags, in groups; the initialisers are the defaults. An empty optional or string: not given.
struct Flags : cli::TrainingFlags {
  cli::RecipeFlags recipe;
  ModelFlags model;
  ModeFlags mode;
  cli::InputFlags input;
  cli::PixelFlags pixels;
  cli::AugmentFlags augment;
  cli::OptimizerFlags optimizer;
  cli::ScheduleFlags schedule;
  cli::DistributionFlags distribution;
  cli::PerformanceFlags performance;
  cli::BenchmarkLogFlags benchmark_log;
  cli::RateFinderFlags rate_finder;
  cli::GraphFlags graph;
  ssd::Flags ssd;
  cli::TfFlags tf;

  // Declares all flags of tf_cnn_benchmarks, from 1.12 to its last version, and the extensions.
  void declare(cli::FlagSet& flags);
  // Derives flags that were not given from given ones, after parsing.
  void settle(cli::FlagSet& flags) const;
  // Throws Error for combinations that tf_cnn_benchmarks refuses and that are invalid here too, for invalid
  // combinations with extensions, and for unsupported values.
  void check(const cli::FlagSet& flags) const;

 private:
  // All of the above, in the order of the help.
  template <class Self>
  static auto groups(Self& f) {
    return std::tie(f.recipe, f.model, f.mode, f.run, f.input, f.pixels, f.augment, f.optimizer, f.schedule, f.machine,
                    f.ranks, f.distribution, f.checkpoints, f.fine_tuning, f.display, f.performance, f.summaries,
                    f.benchmark_log, f.rate_finder, f.tracing, f.graph, f.ssd, f.tf);
  }
  // Checks across groups.
  void check_across_groups() const;
};

// Flags of tf_cnn_benchmarks that are not read: without effect, or refused.
void declare_unread(cli::FlagSet& flags);

}  // namespace dtrain::cnn_benchmarks
