// Conversion and export of detector weights, shared with dtrain-convert.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/mask_rcnn/flags.h"
#include "dtrain/io/array_file.h"

namespace dtrain::mask_rcnn {

struct ConvertOptions {
  ModelFlags model{};
  std::string from{}, to{}, names{};  // names: of models::all_weight_names(); empty: by the format
  ArrayFormat format = ArrayFormat::safetensors;
  bool lists_tensors = false;  // in the report
};

// Program names of detector tensors: "torchvision" ...
std::vector<std::string> program_ids();

// Converts weights between the tensor names of programs, and prints a report on stdout. `given`: the flags that were
// given.
void convert_weights(ConvertOptions options, const cli::FlagSet& given);

struct ExportOptions {
  ModelFlags model{};  // with the weights in `load`
  std::string onnx{};  // file to write
  std::optional<int64_t> height{}, width{};

  void declare_size(cli::FlagSet& flags);
};

// Exports a detector to ONNX, and reports it on stdout.
void export_weights(const ExportOptions& options, const cli::FlagSet& given);

}  // namespace dtrain::mask_rcnn
