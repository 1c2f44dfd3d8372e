// Copies of the arrays of a file into another format.
#pragma once

#include <string>
#include <vector>

#include "dtrain/io/array_file.h"

namespace dtrain::convert {

struct ArrayCopy {
  const ArrayEntry* from;  // entry of the input file
  SafetensorsEntry to;     // name, type in safetensors' spelling, and shape in the output
};

struct LeftOut {
  std::string name, reason;
};

struct CopyPlan {
  std::vector<ArrayCopy> arrays{};  // in the order of the output
  std::vector<LeftOut> left_out{};
  size_t stripped = 0;  // names without the prefix of a wrapper
  size_t renamed = 0;   // by another program's names
};

// Type of an array in the output, or why it cannot be written.
struct OutputType {
  std::string dtype{}, refusal{};
};

// Types are kept where `format` has them; BF16 becomes F32 in .npz. `as_f32`: all floating-point numbers do.
OutputType output_type(const ArrayFile& file, const ArrayEntry& entry, ArrayFormat format, bool as_f32);

// Copies all arrays under their names, without the prefixes of wrappers: `module.` and `_orig_mod.` where they occur,
// `model.` where all names have it. Names stay if two arrays would have the same.
CopyPlan plan_copy(const ArrayFile& file, ArrayFormat format, bool as_f32);

// Puts wide elements first, which aligns the arrays of a safetensors file.
void order_by_alignment(CopyPlan& plan);

// Writes the arrays one at a time. Throws Error(Fault::numeric) for an F64 element beyond the range of F32 that is to
// be cast, and as ArrayOutput does.
void write_copy(const ArrayFile& file, const CopyPlan& plan, ArrayFormat format, const SafetensorsMetadata& metadata,
                const std::string& path);

// Prints a line per array if `lists_arrays`, and the summary, on stdout. `names`: "torchvision's names to timm's", or
// empty.
void print_copy(const ArrayFile& file, const CopyPlan& plan, ArrayFormat format, const std::string& path,
                const std::string& names, bool lists_arrays);

}  // namespace dtrain::convert
