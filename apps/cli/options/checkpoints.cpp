// Checkpoints and weights.
#include "apps/cli/options/checkpoints.h"

#include <filesystem>

#include "dtrain/core/error.h"
#include "dtrain/io/remote_path.h"
#include "libdtrain/io/file_lock.h"
#include "libdtrain/train/checkpoint_files.h"
#include "libdtrain/train/remote_train_dir.h"

namespace dtrain::cli {
namespace {

constexpr int64_t kForEver = 1'000'000'000'000;  // for seconds and for checkpoints

}  // namespace

Flag& CheckpointFlags::declare_saving(FlagSet& flags) {
  flags.group("Checkpoints");
  Flag& folder = flags
                     .add("train_dir", train_dir,
                          "folder of the checkpoints, or s3://BUCKET/PREFIX; a restarted run resumes from the newest")
                     .may_be_remote();
  flags.add("save_model_secs", save_model_secs, "seconds between checkpoints; 0: only at the end", {0, kForEver});
  flags.add("save_model_steps", save_model_steps, "instead of save_model_secs: steps between checkpoints",
            kPositiveCount);
  flags.add("max_ckpts_to_keep", max_ckpts_to_keep, "number of newest checkpoints to keep, at least 2", {1, kForEver});
  flags.add("resume", resume,
            "auto: from the newest checkpoint in train_dir, if any; never: an error if train_dir has a checkpoint; or "
            "the path of a checkpoint");
  flags.add("local_ckpt", local_ckpt,
            "train_dir is on a local disk of each host: one rank per host writes checkpoints, and a run resumes from "
            "the newest step that all hosts have");
  flags.add("checkpoint_timeout", checkpoint_timeout,
            "timeout in seconds for writing a checkpoint to disk; exit code 6 on expiry", {0.001, 1e9});
  flags.add("lease_timeout", lease_timeout,
            "seconds after which another job may write to an s3:// train_dir whose job has died", {1, 86'400});
  follow.declare(flags);
  return folder;
}

void CheckpointFlags::declare(FlagSet& flags) {
  declare_saving(flags);
  flags.add("save_model_epochs", save_model_epochs,
            "instead of save_model_secs: epochs between checkpoints, rounded down to whole steps", {0, 1e9});
  flags.add("clear_train_dir", clear_train_dir,
            "delete the checkpoints and TensorBoard event files in train_dir before the start");
  flags.group("Checkpoints");
  flags
      .add("weights", weights,
           "initial weights, or the weights to evaluate with --eval: a file (.safetensors, .npz, .pth, .pt, .ckpt; "
           "also s3:// or https://) with torchvision's or timm's tensor names, a checkpoint folder, or a train_dir "
           "(also s3://), whose newest checkpoint is used; model settings recorded there are used")
      .may_be_remote();
}

void CheckpointFlags::clear(const Ranks& ranks, Group& group) const {
  namespace fs = std::filesystem;
  const bool writes = local_ckpt ? ranks.local_rank == 0 : ranks.is_chief();
  if (clear_train_dir && writes && fs::is_directory(train_dir)) {
    const FileLock lock(train_dir + "/lock");
    try {
      fs::remove_all(fs::path(train_dir) / "checkpoints");
      for (const auto& entry : fs::directory_iterator(train_dir))
        if (entry.path().filename().string().starts_with("events.out.tfevents.")) fs::remove(entry.path());
    } catch (const fs::filesystem_error& error) {
      throw Error(Fault::resource, concat("--clear_train_dir: ", error.what()));
    }
  }
  if (clear_train_dir) group.extremes(0, "clearing of train_dir");  // collective
}

void CheckpointFlags::check(const FlagSet& flags) const {
  const bool path = flags.given("resume") && resume != "never" && resume != "auto";
  refuse({
      {int{save_model_secs > 0} + int{save_model_steps.has_value()} + int{save_model_epochs.has_value()} > 1,
       "--save_model_secs, --save_model_steps and --save_model_epochs: at most one may be given"},
      {dtrain::is_remote(train_dir) && !is_remote(), "--train_dir: expected a local path or s3://BUCKET/PREFIX"},
      {is_remote() && local_ckpt, "--local_ckpt needs a local --train_dir"},
      {local_ckpt && train_dir.empty(), "--local_ckpt needs --train_dir"},
      {save_model_steps && train_dir.empty(), "--save_model_steps needs --train_dir"},
      {save_model_secs > 0 && train_dir.empty(), "--save_model_secs needs --train_dir"},
      {clear_train_dir && (train_dir.empty() || resume != "auto"),
       "--clear_train_dir needs --train_dir, and excludes --resume"},
      {save_model_epochs && train_dir.empty(), "--save_model_epochs needs --train_dir"},
      {path && train_dir.empty(), "--resume=PATH needs --train_dir, where the run continues"},
  });
  follow.check(flags, train_dir);
}

void CheckpointFlags::apply(RunOptions& run) const {
  run.train_dir = train_dir;
  if (remote) run.publish = [to = remote](const CommittedCheckpoint& committed) { to->publish(committed); };
  run.local_checkpoints = local_ckpt;
  run.keep = max_ckpts_to_keep;
  run.checkpoint_timeout = checkpoint_timeout;
  run.follow = follow.options();
  run.resume = resume == "never" ? Resume::never : Resume::newest;
  run.resume_from = resume == "never" || resume == "auto" ? "" : resume;
  run.cadence.save_every_steps = static_cast<uint64_t>(save_model_steps.value_or(0));
  run.cadence.save_every_seconds = static_cast<double>(save_model_secs);
}

std::string CheckpointFlags::recorded_weights(bool evaluates) const {
  if (!weights.empty() || !evaluates || train_dir.empty()) return weights;
  if (is_remote()) return newest_remote_weights(train_dir, Fault::config).value_or("");
  if (looks_complete(train_dir)) return train_dir;
  return newest_checkpoint(train_dir, looks_complete).value_or("");
}

}  // namespace dtrain::cli
