// Command lines of TensorPack's and AWS Mask R-CNN's programs, and their translation into commands of ours.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/mask_rcnn/commands.h"

namespace dtrain::mask_rcnn {

enum class Original { tensorpack_train, tensorpack_predict, aws_train };

struct Translation {
  std::string command;                 // train, eval, predict or visualize
  Arguments arguments;                 // of the command
  std::vector<std::string> notices{};  // about the command line
};

// Translates `argv`, whose first entry is program and command. `gpus`: number of GPUs of this machine. None if help was
// printed. Throws Error for unsupported arguments.
std::optional<Translation> translated(Original original, const Arguments& argv, int gpus);

}  // namespace dtrain::mask_rcnn
