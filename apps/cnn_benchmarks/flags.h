// The flags of dtrain-cnn-benchmarks: those of tf_cnn_benchmarks, by its names, types and defaults, and our own.
#pragma once

#include <tuple>

#include "apps/cli/options/augment.h"
#include "apps/cli/options/benchmark_log.h"
#include "apps/cli/options/checkpoints.h"
#include "apps/cli/options/display.h"
#include "apps/cli/options/distribution.h"
#include "apps/cli/options/input.h"
#include "apps/cli/options/machine.h"
#include "apps/cli/options/optimizer.h"
#include "apps/cli/options/performance.h"
#include "apps/cli/options/ranks.h"
#include "apps/cli/options/rate_finder.h"
#include "apps/cli/options/recipe.h"
#include "apps/cli/options/run.h"
#include "apps/cli/options/summaries.h"
#include "apps/cli/options/tracing.h"
#include "apps/cnn_benchmarks/mode_flags.h"
#include "apps/cnn_benchmarks/model_flags.h"

namespace dtrain::cnn_benchmarks {

// The values of the flags that are served, in groups; the initialisers are the defaults. An empty optional or string
// means that the flag was not given.
struct Flags {
  cli::RecipeFlags recipe;
  ModelFlags model;
  ModeFlags mode;
  cli::RunFlags run;
  cli::InputFlags input;
  cli::PixelFlags pixels;
  cli::AugmentFlags augment;
  cli::OptimizerFlags optimizer;
  cli::ScheduleFlags schedule;
  cli::MachineFlags machine;
  cli::RankFlags ranks;
  cli::DistributionFlags distribution;
  cli::CheckpointFlags checkpoints;
  cli::DisplayFlags display;
  cli::PerformanceFlags performance;
  cli::SummaryFlags summaries;
  cli::BenchmarkLogFlags benchmark_log;
  cli::RateFinderFlags rate_finder;
  cli::TracingFlags tracing;
  cli::GraphFlags graph;
  TfFlags tf;

  // Declares every flag of tf_cnn_benchmarks, 1.12 to its last version, and the extensions, bound to these values.
  void declare(cli::FlagSet& flags);
  // After the command line has been read: sets what was not given by what was.
  void settle(cli::FlagSet& flags) const;
  // Throws Error for the combinations that tf_cnn_benchmarks refuses and that make no sense here either, for those that
  // its extensions add, and for what is not served.
  void check(const cli::FlagSet& flags) const;

 private:
  // All of the above, in the order of the help.
  template <class Self>
  static auto groups(Self& f) {
    return std::tie(f.recipe, f.model, f.mode, f.run, f.input, f.pixels, f.augment, f.optimizer, f.schedule, f.machine,
                    f.ranks, f.distribution, f.checkpoints, f.display, f.performance, f.summaries, f.benchmark_log,
                    f.rate_finder, f.tracing, f.graph, f.tf);
  }
  // Those that concern flags of several groups.
  void check_across_groups() const;
};

// Those of tf_cnn_benchmarks whose values nothing reads: without effect here, or refused.
void declare_unread(cli::FlagSet& flags);

}  // namespace dtrain::cnn_benchmarks
