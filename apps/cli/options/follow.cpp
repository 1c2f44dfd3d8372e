// One metric is followed: the same one for both purposes.
#include "apps/cli/options/follow.h"

namespace dtrain::cli {

void FollowFlags::declare(FlagSet& flags) {
  flags.group("What follows from evaluations");
  flags.add("keep_best", keep_best,
            "metric of evaluations, such as top_1_accuracy: the checkpoint of the best one is kept besides the newest "
            "ones, and train_dir/best leads to it. A metric whose name ends with loss is the better the lower it is");
  flags.add("early_stop_patience", early_stop_patience,
            "end training after so many evaluations in a row in which the metric has not improved", kPositiveCount);
  flags.add("early_stop_metric", early_stop_metric, "by default that of keep_best, or loss");
  flags.add("early_stop_min_delta", early_stop_min_delta, "what is less of an improvement counts as none",
            kNotNegative);
}

void FollowFlags::check(const FlagSet& flags, const std::string& train_dir) const {
  refuse({
      {!keep_best.empty() && train_dir.empty(), "--keep_best needs --train_dir"},
      {!early_stop_patience && (flags.given("early_stop_metric") || flags.given("early_stop_min_delta")),
       "--early_stop_metric and --early_stop_min_delta need --early_stop_patience"},
      {!keep_best.empty() && !early_stop_metric.empty() && keep_best != early_stop_metric,
       "--keep_best and --early_stop_metric: the same metric is followed for both"},
  });
}

FollowOptions FollowFlags::options() const {
  if (!wanted()) return {};
  FollowOptions options;
  options.metric = !keep_best.empty() ? keep_best : !early_stop_metric.empty() ? early_stop_metric : "loss";
  // Of what the programs measure losses alone are better lower.
  options.better = options.metric.ends_with("loss") ? Better::lower : Better::higher;
  options.keep_best = !keep_best.empty();
  options.patience = static_cast<uint64_t>(early_stop_patience.value_or(0));
  options.min_delta = early_stop_min_delta;
  return options;
}

}  // namespace dtrain::cli
