// Flags of dtrain-mask-rcnn: model and data, shared by the commands, and training.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/cli/flags.h"
#include "apps/cli/options/training.h"
#include "apps/mask_rcnn/commands.h"
#include "apps/mask_rcnn/settings.h"

namespace dtrain::mask_rcnn {

// Model and data: a preset and TensorPack's keys.
struct ModelFlags {
  std::string preset = "torchvision", config_file, load, data_dir, exif_orientation = "auto";
  bool strict = false;
  std::vector<std::string> assignments;  // KEY=VALUE, in order
  std::vector<std::string> continued;    // to_train: KEY=VALUE that override the preset, see continued_conventions()

  // Removes `--config KEY=VALUE ...` from argv, as in TensorPack: all arguments up to the next flag.
  static Arguments take_config(const Arguments& argv, std::vector<std::string>& assignments);
  // All, or --preset and --config_file alone, or --load.
  void declare(cli::FlagSet& flags);
  void declare_conventions(cli::FlagSet& flags, const std::string& group = "Model and data");
  void declare_load(cli::FlagSet& flags);
  // Purpose of the weights. as_trained and to_convert: a flag or key that contradicts their record is an Error.
  // to_train: initial weights of a training, which may differ from the recorded one.
  enum class Use { as_trained, to_convert, to_train };
  // The preset or the recorded settings, overridden by --config_file, --config and flags. Settings::weights is a file,
  // see weights_file(). `given`: the flags that were given. Appends notices about keys without effect and the source of
  // the conventions.
  Settings settings(const cli::FlagSet& given, std::vector<std::string>& notices, Use use = Use::as_trained) const;
  // Settings of the preset with --config_file, --config and flags, without weights and their record.
  Settings without_weights() const;

 private:
  Settings changed(Settings settings, std::vector<std::string>& notices) const;
  std::string weights() const;  // the file; may be empty
};

struct TrainFlags : cli::TrainingFlags {
  ModelFlags model;
  int64_t throughput_log_freq = 100;
  std::string compatible_with = "dtrain";

  TrainFlags() { summaries.summary_verbosity = 1; }
  void declare(cli::FlagSet& flags);
  void check(const cli::FlagSet& flags) const;
  // With TRAIN.STARTING_EPOCH above 1, resumes the checkpoint in --load instead of loading its weights, unless
  // train_dir has a checkpoint.
  void resume_at_starting_epoch();
  bool prints_tensorpack_log() const { return compatible_with == "tensorpack"; }
};

// Parses argv with `flags` and returns the positional arguments; none if help was printed.
std::optional<std::vector<std::string>> read_arguments(cli::FlagSet& flags, ModelFlags& model, const Arguments& argv);

}  // namespace dtrain::mask_rcnn
