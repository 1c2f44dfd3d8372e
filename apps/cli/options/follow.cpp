// A single metric determines the best checkpoint and early stopping.
#include "apps/cli/options/follow.h"

namespace dtrain::cli {

void FollowFlags::declare(FlagSet& flags) {
  flags.group("Best checkpoint and early stopping");
  flags.add("keep_best", keep_best,
            "evaluation metric, such as top_1_accuracy: the checkpoint with its best value is kept in addition to the "
            "newest, and train_dir/best links to it. Metrics whose name ends in loss are minimised, others maximised");
  flags.add("early_stop_patience", early_stop_patience,
            "stop training after this many consecutive evaluations without improvement", kPositiveCount);
  flags.add("early_stop_metric", early_stop_metric, "metric for early stopping; default: keep_best, else loss");
  flags.add("early_stop_min_delta", early_stop_min_delta, "smallest change of the metric that counts as an improvement",
            kNotNegative);
}

void FollowFlags::check(const FlagSet& flags, const std::string& train_dir) const {
  refuse({
      {!keep_best.empty() && train_dir.empty(), "--keep_best needs --train_dir"},
      {!early_stop_patience && (flags.given("early_stop_metric") || flags.given("early_stop_min_delta")),
       "--early_stop_metric and --early_stop_min_delta need --early_stop_patience"},
      {!keep_best.empty() && !early_stop_metric.empty() && keep_best != early_stop_metric,
       "--keep_best and --early_stop_metric must name the same metric"},
  });
}

FollowOptions FollowFlags::options() const {
  if (!wanted()) return {};
  FollowOptions options;
  options.metric = !keep_best.empty() ? keep_best : !early_stop_metric.empty() ? early_stop_metric : "loss";
  // Only losses are minimised.
  options.better = options.metric.ends_with("loss") ? Better::lower : Better::higher;
  options.keep_best = !keep_best.empty();
  options.patience = static_cast<uint64_t>(early_stop_patience.value_or(0));
  options.min_delta = early_stop_min_delta;
  return options;
}

}  // namespace dtrain::cli
