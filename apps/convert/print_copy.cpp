// Report of a copy: its arrays, what was cast, stripped and left out.
#include <algorithm>

#include <fmt/format.h>

#include "apps/cli/messages.h"
#include "apps/cli/output.h"
#include "apps/convert/array_copy.h"
#include "libdtrain/io/element_types.h"

namespace dtrain::convert {
namespace {

const char* name_of(ArrayFormat format) {
  if (format == ArrayFormat::torch) return "PyTorch or pickle";
  return format == ArrayFormat::npz ? "NumPy .npz" : "safetensors";
}

// "fc.weight  F32 [10, 512], from module.fc.weight  F16"
std::string line_of(const ArrayFile& file, const ArrayCopy& copy) {
  std::string line = concat(cli::escaped(copy.to.name), "  ", copy.to.dtype, " ", copy.to.shape);
  const std::string type = file.safetensors_type(*copy.from);
  std::string differences;
  if (copy.from->name != copy.to.name) differences += " " + cli::escaped(copy.from->name);
  if (type != copy.to.dtype) differences += " " + type;
  if (copy.from->shape != copy.to.shape) differences += concat(" ", copy.from->shape);
  return differences.empty() ? line : line + ", from" + differences;
}

}  // namespace

void print_copy(const ArrayFile& file, const CopyPlan& plan, ArrayFormat format, const std::string& path,
                const std::string& names, bool lists_arrays) {
  std::ostream& out = cli::patient_stdout();
  const auto row = [&](const char* title, const std::string& text) { out << fmt::format("{:<13}{}\n", title, text); };
  if (lists_arrays)
    for (const ArrayCopy& copy : plan.arrays) out << line_of(file, copy) << '\n';
  const auto is_cast = [&](const ArrayCopy& copy) { return file.safetensors_type(*copy.from) != copy.to.dtype; };
  uint64_t bytes = 0;
  for (const ArrayCopy& copy : plan.arrays)
    bytes += static_cast<uint64_t>(copy.to.shape.count()) * bytes_of_dtype(copy.to.dtype);
  row("Read:",
      fmt::format("{}, {}, {} tensors", cli::escaped(file.path()), name_of(file.format()), file.entries().size()));
  if (!names.empty()) row("Renamed:", fmt::format("{} from {}", plan.renamed, names));
  row("Stripped:", plan.stripped == 0 ? "0" : fmt::format("{} names of a wrapper's prefix", plan.stripped));
  row("Cast:", fmt::format("{}", std::ranges::count_if(plan.arrays, is_cast)));
  if (!file.left_out().empty()) row("Not read:", cli::escaped(file.left_out()));
  row("Left out:", fmt::format("{}", plan.left_out.size()));
  for (const LeftOut& one : plan.left_out)
    out << fmt::format("  {}: {}\n", cli::escaped(one.name), cli::escaped(one.reason));
  row("Written:",
      fmt::format("{}, {}, {} tensors, {} bytes", cli::escaped(path), name_of(format), plan.arrays.size(), bytes));
  out << std::flush;
}

}  // namespace dtrain::convert
