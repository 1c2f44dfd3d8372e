#include "apps/cnn_benchmarks/mode_flags.h"

#include <algorithm>
#include <charconv>

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
  flags.add("freeze_when_forward_only", freeze_when_forward_only, "parameters are constants in forward_only anyway");
  flags.add("eval_interval_secs", eval_interval_secs, "pause between evaluations with --eval; 0: evaluate once",
            cli::kNotNegative);
  flags.add("eval_during_training_every_n_steps", eval_during_training_every_n_steps,
            "pause training for an evaluation; at most one of these four forms may be given. Steps are global, warm-up "
            "included",
            cli::kPositive);
  flags.add("eval_during_training_every_n_epochs", eval_during_training_every_n_epochs, "the same by epochs",
            cli::kNotNegative);
  flags.add("eval_during_training_at_specified_steps", eval_during_training_at_specified_steps, "e.g. 100,200,500");
  flags.add("eval_during_training_at_specified_epochs", eval_during_training_at_specified_epochs, "e.g. 0.5,1,10");
  flags.add("stop_at_top_1_accuracy", stop_at_top_1_accuracy, "end training once an evaluation reaches this share",
            cli::kShare);
}

int ModeFlags::forms() const {
  return int{eval_during_training_every_n_steps.has_value()} + int{eval_during_training_every_n_epochs.has_value()} +
         int{!eval_during_training_at_specified_steps.empty()} + int{!eval_during_training_at_specified_epochs.empty()};
}

void ModeFlags::check(const cli::FlagSet& flags) const {
  cli::refuse({
      {forms() > 1, "--eval_during_training_*: at most one of the four forms may be given"},
      {eval && forms() > 0, "--eval and --eval_during_training_*: at most one may be given"},
      {forward_only && eval, "--forward_only and --eval: at most one may be given"},
      {forward_only && forms() > 0, "--forward_only and --eval_during_training_*: at most one may be given"},
      {stop_at_top_1_accuracy && forms() == 0, "--stop_at_top_1_accuracy needs one of --eval_during_training_*"},
      {!flags.text("trt_mode").empty() && !(forward_only && freeze_when_forward_only),
       "--trt_mode needs --forward_only and --freeze_when_forward_only"},
  });
}

RunMode ModeFlags::mode() const {
  if (eval) return RunMode::evaluation;
  if (forward_only) return RunMode::forward_only;
  return evaluates_during_training() ? RunMode::training_and_evaluation : RunMode::training;
}

std::set<uint64_t> ModeFlags::evaluation_steps(uint64_t total_steps, uint64_t samples, int64_t batch) const {
  std::set<uint64_t> steps;
  const auto add_epoch = [&](double epoch) {
    steps.insert(static_cast<uint64_t>(cli::batches_of(epoch, samples, batch)));
  };
  if (eval_during_training_every_n_steps) {
    const auto n = static_cast<uint64_t>(*eval_during_training_every_n_steps);
    for (uint64_t step = n; step < total_steps; step += n) steps.insert(step);
  }
  if (eval_during_training_every_n_epochs) {
    const double n = *eval_during_training_every_n_epochs;
    DT_CHECK(n * static_cast<double>(samples) >= 1, "--eval_during_training_every_n_epochs=", n,
             ": less than an image");
    const double end = static_cast<double>(total_steps) * static_cast<double>(batch) / static_cast<double>(samples);
    for (int64_t i = 1; static_cast<double>(i) * n < end; ++i) add_epoch(static_cast<double>(i) * n);
  }
  for (const std::string& text : eval_during_training_at_specified_steps)
    steps.insert(parse_point<uint64_t>(text, "eval_during_training_at_specified_steps"));
  for (const std::string& text : eval_during_training_at_specified_epochs)
    add_epoch(parse_point<double>(text, "eval_during_training_at_specified_epochs"));
  return steps;
}

void TfFlags::declare(cli::FlagSet& flags) {
  flags.group("Only in tf_cnn_benchmarks");
  flags.add("num_gpus", num_gpus, "devices of this process: 1", cli::kPositive);
  flags.add("autotune_threshold", autotune_threshold,
            "only sets the default of num_warmup_batches, to max(10, 5 * autotune_threshold^2)", cli::kPositive);
  flags.add_choice("data_format", data_format, {"NHWC", "NCHW"}, "the engine is NHWC; NCHW is accepted with a notice");
  flags.add_choice("loss_type_to_report", loss_type_to_report, {"base_loss", "total_loss"},
                   "total_loss includes the L2 term of weight_decay");
  flags.add("print_training_accuracy", print_training_accuracy, "add top-1 and top-5 columns");
  flags.add("fuse_decode_and_crop", fuse_decode_and_crop_,
            "only the crop window is decoded; pixels are equal either way");
  flags.add("single_l2_loss_op", single_l2_loss_op_, "the L2 term is one pass in any case");
  flags.add("mkl", mkl_, "oneDNN is used on a CPU in any case");
  flags.add("sync_on_finish", sync_on_finish_, "the clock stops after the device has finished in any case");
}

int64_t TfFlags::warmup_batches() const {
  const int64_t tries = autotune_threshold.value_or(1);
  return std::max<int64_t>(10, 5 * tries * tries);
}

}  // namespace dtrain::cnn_benchmarks
