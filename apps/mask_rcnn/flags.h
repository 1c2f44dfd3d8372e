// The flags that commands of dtrain-mask-rcnn share.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/cli/flags.h"
#include "apps/mask_rcnn/commands.h"
#include "apps/mask_rcnn/settings.h"

namespace dtrain::mask_rcnn {

// The model and its data: a preset and TensorPack's keys.
struct ModelFlags {
  std::string preset = "torchvision", config_file, load, data_dir, exif_orientation = "auto";
  bool strict = false;
  std::vector<std::string> assignments;  // KEY=VALUE, in order
  std::vector<std::string> continued;    // to_train: KEY=VALUE in place of the preset's, see continued_conventions()

  // Takes `--config KEY=VALUE ...` out of argv, as TensorPack's programs have it: all arguments up to the next flag.
  static Arguments take_config(const Arguments& argv, std::vector<std::string>& assignments);
  // All, or --preset and --config_file alone, or --load.
  void declare(cli::FlagSet& flags);
  void declare_conventions(cli::FlagSet& flags);
  void declare_load(cli::FlagSet& flags);
  // What weights are for: as_trained and to_convert, they are what their record says, and a flag or key that says
  // otherwise is an Error; to_train, they are where a training starts from, which may differ from the one before.
  enum class Use { as_trained, to_convert, to_train };
  // The preset, or what the weights have recorded, with what --config_file, --config and the flags change of it.
  // Settings::weights is a file, see weights_file(). `given` tells which flags were given. Appends to `notices`
  // what has no effect, and where the conventions come from.
  Settings settings(const cli::FlagSet& given, std::vector<std::string>& notices, Use use = Use::as_trained) const;

 private:
  Settings changed(Settings settings, std::vector<std::string>& notices) const;
  std::string weights() const;  // the file; empty where there is none
};

// Reads argv with `flags`, whose positional arguments are returned; none where help was asked for and printed.
std::optional<std::vector<std::string>> read_arguments(cli::FlagSet& flags, ModelFlags& model, const Arguments& argv);

}  // namespace dtrain::mask_rcnn
