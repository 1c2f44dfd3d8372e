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

  // Takes `--config KEY=VALUE ...` out of argv, as TensorPack's programs have it: all arguments up to the next flag.
  static Arguments take_config(const Arguments& argv, std::vector<std::string>& assignments);
  // All, or --preset and --config_file alone, or --load.
  void declare(cli::FlagSet& flags);
  void declare_conventions(cli::FlagSet& flags);
  void declare_load(cli::FlagSet& flags);
  // The preset with what --config_file, --config and the flags change of it. Appends to `notices` what has no effect.
  Settings settings(std::vector<std::string>& notices) const;
};

// Reads argv with `flags`, whose positional arguments are returned; none where help was asked for and printed.
std::optional<std::vector<std::string>> read_arguments(cli::FlagSet& flags, ModelFlags& model, const Arguments& argv);

}  // namespace dtrain::mask_rcnn
