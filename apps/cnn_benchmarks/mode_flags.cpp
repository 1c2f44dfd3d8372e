#include "apps/cnn_benchmarks/mode_flags.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "apps/cli/options/run.h"
#include "dtrain/core/error.h"

namespace dtrain::cnn_benchmarks {
namespace {

template <class T>
T parse_point(const std::string& text, const char* flag) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  DT_CHECK(error == std::errc() && end == text.data() + text.size() && value > 0, "--", flag,
           ": expected positive numbers with commas between them, found '", text, "'");
  return value;
}

}  // namespace

const char* name_of(RunMode mode) {
  switch (mode) {
    case RunMode::training:
      return "training";
    case RunMode::training_and_evaluation:
      return "training + evaluation";
    case RunMode::evaluation:
      return "evaluation";
    case RunMode::forward_only:
      return "forward only";
  }
  return "";
}

void ModeFlags::declare(cli::FlagSet& flags) {
  flags.group("Mode and evaluation");
  flags.add("eval", eval, "evaluate the newest checkpoint of train_dir, also on s3://, instead of training");
  flags.add("forward_only", forward_only, "inference: no gradients, no updates; the loss is shown as 0");
  flags.add("eval_interval_secs", eval_interval_secs, "pause between evaluations with --eval; 0: evaluate once",
            cli::kCount);
  flags.add(
      "eval_nth_checkpoints", eval_nth_checkpoints,
      "with --eval: evaluate every n-th of the kept checkpoints, oldest first, and the newest; 0: only the newest",
      cli::kCount);
  flags.add("eval_during_training_every_n_steps", eval_during_training_every_n_steps,
            "steps between evaluations; at most one of these four flags may be given. Steps are global and include the "
            "warm-up",
            cli::kPositiveCount);
  flags.add("eval_during_training_every_n_epochs", eval_during_training_every_n_epochs, "epochs between evaluations",
            {0, 1e9});
  flags.add("eval_during_training_at_specified_steps", eval_during_training_at_specified_steps,
            "steps to evaluate after, e.g. 100,200,500");
  flags.add("eval_during_training_at_specified_epochs", eval_during_training_at_specified_epochs,
            "epochs to evaluate after, e.g. 0.5,1,10");
  flags.add("stop_at_top_1_accuracy", stop_at_top_1_accuracy,
            "stop training once an evaluation reaches this top-1 accuracy, from 0 to 1", cli::kShare);
  flags.add("eval_dir", eval_dir, "folder for the TensorBoard event files of --eval; by default none are written");
}

int ModeFlags::forms() const {
  return int{eval_during_training_every_n_steps.has_value()} + int{eval_during_training_every_n_epochs.has_value()} +
         int{!eval_during_training_at_specified_steps.empty()} + int{!eval_during_training_at_specified_epochs.empty()};
}

void ModeFlags::check(const cli::FlagSet&) const {
  cli::refuse({
      {eval_nth_checkpoints > 0 && (!eval || eval_interval_secs > 0),
       "--eval_nth_checkpoints needs --eval without --eval_interval_secs"},
      {forms() > 1, "--eval_during_training_*: at most one of the four forms may be given"},
      {eval && forms() > 0, "--eval and --eval_during_training_*: at most one may be given"},
      {forward_only && eval, "--forward_only and --eval: at most one may be given"},
      {forward_only && forms() > 0, "--forward_only and --eval_during_training_*: at most one may be given"},
      {stop_at_top_1_accuracy && forms() == 0, "--stop_at_top_1_accuracy needs one of --eval_during_training_*"},
  });
}

RunMode ModeFlags::mode() const {
  if (eval) return RunMode::evaluation;
  if (forward_only) return RunMode::forward_only;
  return evaluates_during_training() ? RunMode::training_and_evaluation : RunMode::training;
}

std::optional<double> ModeFlags::evaluation_offset() const {
  if (eval_during_training_every_n_epochs) return *eval_during_training_every_n_epochs - 1;
  if (eval_during_training_at_specified_epochs.empty()) return {};
  const char* const flag = "eval_during_training_at_specified_epochs";
  return parse_point<double>(eval_during_training_at_specified_epochs.front(), flag) - 1;
}

std::function<bool(uint64_t)> ModeFlags::evaluates_after(uint64_t samples, int64_t batch) const {
  if (eval_during_training_every_n_steps)
    return [n = static_cast<uint64_t>(*eval_during_training_every_n_steps)](uint64_t step) { return step % n == 0; };
  if (eval_during_training_every_n_epochs) {
    const double n = *eval_during_training_every_n_epochs, images = n * static_cast<double>(samples);
    DT_CHECK(images >= 1, "--eval_during_training_every_n_epochs=", n, ": less than one image");
    return [=](uint64_t step) {
      // The last evaluation due by this step, +-1 because of rounding.
      const auto last = static_cast<int64_t>(static_cast<double>(step) * static_cast<double>(batch) / images);
      for (int64_t i = std::max<int64_t>(last - 1, 1); i <= last + 1; ++i)
        if (cli::batches_of(static_cast<double>(i) * n, samples, batch) == static_cast<int64_t>(step)) return true;
      return false;
    };
  }
  std::set<uint64_t> steps;
  for (const std::string& text : eval_during_training_at_specified_steps)
    steps.insert(parse_point<uint64_t>(text, "eval_during_training_at_specified_steps"));
  for (const std::string& text : eval_during_training_at_specified_epochs)
    steps.insert(static_cast<uint64_t>(
        cli::batches_of(parse_point<double>(text, "eval_during_training_at_specified_epochs"), samples, batch)));
  return [steps](uint64_t step) { return steps.contains(step); };
}

}  // namespace dtrain::cnn_benchmarks
