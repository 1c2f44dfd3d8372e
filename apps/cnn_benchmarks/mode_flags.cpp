#include "apps/cnn_benchmarks/mode_flags.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "apps/cli/options/run.h"
#include "libdtrain/core/error.h"

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
  flags.add("eval", eval, "evaluate the newest checkpoint of train_dir instead of training");
  flags.add("forward_only", forward_only, "inference: no gradients, no updates; the loss is shown as 0");
  flags.add("eval_interval_secs", eval_interval_secs, "pause between evaluations with --eval; 0: evaluate once",
            cli::kCount);
  flags.add("eval_nth_checkpoints", eval_nth_checkpoints,
            "with --eval: evaluate every n-th of the checkpoints that are kept, from the oldest on, and the newest; 0: "
            "the newest alone",
            cli::kCount);
  flags.add("eval_during_training_every_n_steps", eval_during_training_every_n_steps,
            "pause training for an evaluation; at most one of these four forms may be given. Steps are global, warm-up "
            "included",
            cli::kPositiveCount);
  flags.add("eval_during_training_every_n_epochs", eval_during_training_every_n_epochs, "the same by epochs", {0, 1e9});
  flags.add("eval_during_training_at_specified_steps", eval_during_training_at_specified_steps, "e.g. 100,200,500");
  flags.add("eval_during_training_at_specified_epochs", eval_during_training_at_specified_epochs, "e.g. 0.5,1,10");
  flags.add("stop_at_top_1_accuracy", stop_at_top_1_accuracy, "end training once an evaluation reaches this share",
            cli::kShare);
  flags.add("eval_dir", eval_dir, "folder of TensorBoard's events of --eval; by default none are written");
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
    DT_CHECK(images >= 1, "--eval_during_training_every_n_epochs=", n, ": less than an image");
    return [=](uint64_t step) {
      // The last evaluation that is due by then, give or take one for what is rounded.
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

void TfFlags::declare(cli::FlagSet& flags) {
  flags.group("Only in tf_cnn_benchmarks");
  flags.add("num_gpus", num_gpus,
            "devices of this host, or worker, each driven by a rank of its own that this program starts",
            cli::kPositiveCount);
  flags.add("autotune_threshold", autotune_threshold,
            "only sets the default of num_warmup_batches, to max(10, 5 * autotune_threshold^2)", {1, 10000});
  flags.add_choice("data_format", data_format, {"NHWC", "NCHW"}, "the engine is NHWC; NCHW is accepted with a notice");
  flags.add_choice("loss_type_to_report", loss_type_to_report, {"base_loss", "total_loss"},
                   "total_loss includes the L2 term of weight_decay");
  flags.add("print_training_accuracy", print_training_accuracy, "add top-1 and top-5 columns");
  flags
      .add("batch_group_size", batch_group_size, "batches that the input pipeline makes at a time; shown in the header",
           cli::kPositiveCount)
      .no_effect("each batch is made by itself, ahead of its step");
  flags.add("rewriter_config", rewriter_config, "how TensorFlow rewrites its graph; shown in the header")
      .no_effect("there is no graph of TensorFlow");
  flags.add_choice("compatible_with", compatible_with, {"master", "1.12"},
                   "branch of tf_cnn_benchmarks: 1.12 prints the header of that branch, and distorts colours unless "
                   "--nodistortions is given");
}

int64_t TfFlags::warmup_batches() const {
  const int64_t tries = autotune_threshold.value_or(1);
  return std::max<int64_t>(10, 5 * tries * tries);
}

}  // namespace dtrain::cnn_benchmarks
