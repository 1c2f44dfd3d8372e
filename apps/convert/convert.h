// Conversion of weights between formats and programs.
#pragma once

#include <optional>
#include <string>

#include "apps/cli/loaded_classifier.h"
#include "apps/mask_rcnn/exchange.h"

namespace dtrain::convert {

enum class Target { safetensors, npz, onnx };

// Titles of groups of flags.
inline constexpr char kOutputGroup[] = "Output", kDetectorGroup[] = "Detectors (--model=mask_rcnn)";

struct Options {
  std::string in{}, out{};
  std::string to{}, names{}, dtype = "keep";
  bool force = false, summary = false;
  cli::ClassifierFlags classifier{};  // --model, also of detectors
  mask_rcnn::ExportOptions detector{};

  // --to, or else by the name of the output file. Throws Error if neither states it.
  Target target() const;
  ArrayFormat format() const { return target() == Target::npz ? ArrayFormat::npz : ArrayFormat::safetensors; }
};

// Converts `in` to `out`. `given`: the flags that were given.
void convert(Options options, const cli::FlagSet& given);

}  // namespace dtrain::convert
