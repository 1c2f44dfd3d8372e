#include "apps/convert/array_copy.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "libdtrain/io/element_types.h"
#include "libdtrain/io/result_file.h"

namespace dtrain::convert {
namespace {

std::string_view without(std::string_view name, std::string_view prefix) {
  return name.starts_with(prefix) && name.size() > prefix.size() ? name.substr(prefix.size()) : name;
}

std::vector<std::string_view> stripped_once(const std::vector<std::string_view>& names) {
  constexpr std::string_view kModel = "model.";
  const bool all = std::ranges::all_of(names, [&](std::string_view name) { return without(name, kModel) != name; });
  std::vector<std::string_view> inner;
  for (const std::string_view name : names) {
    const std::string_view unwrapped = without(without(name, "module."), "_orig_mod.");
    inner.push_back(all ? without(name, kModel) : unwrapped);
  }
  return inner;
}

std::vector<std::string_view> stripped_names(const std::vector<ArrayEntry>& entries) {
  constexpr int kMostWrappers = 8;
  std::vector<std::string_view> names;
  for (const ArrayEntry& entry : entries) names.push_back(entry.name);
  for (int i = 0; i < kMostWrappers && !names.empty(); ++i) {
    std::vector<std::string_view> inner = stripped_once(names);
    if (inner == names || std::set(inner.begin(), inner.end()).size() < inner.size()) break;
    names = std::move(inner);
  }
  return names;
}

// Elements in the output's type.
std::string elements_of(const ArrayFile& file, const ArrayCopy& copy) {
  const std::string type = file.safetensors_type(*copy.from);
  if (type == copy.to.dtype) return file.read_bytes(*copy.from);
  const std::vector<float> cast = file.read(*copy.from);
  if (type == "F64" && std::ranges::any_of(cast, [](float value) { return std::isinf(value); })) {
    const std::string wide = file.read_bytes(*copy.from);
    for (size_t i = 0; i < cast.size(); ++i) {
      double value = 0;
      wide.copy(reinterpret_cast<char*>(&value), sizeof value, i * sizeof value);
      if (std::isinf(cast[i]) && std::isfinite(value))
        throw Error(Fault::numeric, concat(file.path(), ": element ", i, " of ", copy.from->name, " is ", value,
                                           ", beyond the range of F32; leave out --dtype=f32"));
    }
  }
  return {reinterpret_cast<const char*>(cast.data()), cast.size() * sizeof(float)};
}

}  // namespace

OutputType output_type(const ArrayFile& file, const ArrayEntry& entry, ArrayFormat format, bool as_f32) {
  const std::string type = file.safetensors_type(entry);
  if (type.empty()) return {.refusal = concat("elements of the type ", entry.dtype)};
  if (is_floating(type) && as_f32) return {.dtype = "F32"};
  if (format == ArrayFormat::safetensors || !numpy_type(type).empty()) return {.dtype = type};
  if (is_floating(type)) return {.dtype = "F32"};
  return {.refusal = concat("NumPy does not have the type ", type, "; safetensors have it")};
}

CopyPlan plan_copy(const ArrayFile& file, ArrayFormat format, bool as_f32) {
  CopyPlan plan;
  const std::vector<std::string_view> names = stripped_names(file.entries());
  for (size_t i = 0; i < names.size(); ++i) {
    const ArrayEntry& entry = file.entries()[i];
    const auto [type, refusal] = output_type(file, entry, format, as_f32);
    if (!refusal.empty()) {
      plan.left_out.push_back({entry.name, refusal});
      continue;
    }
    plan.stripped += names[i] != entry.name;
    plan.arrays.push_back({&entry, {std::string(names[i]), type, entry.shape}});
  }
  return plan;
}

void order_by_alignment(CopyPlan& plan) {
  std::ranges::stable_sort(plan.arrays, std::greater(),
                           [](const ArrayCopy& copy) { return bytes_of_dtype(copy.to.dtype); });
}

void write_copy(const ArrayFile& file, const CopyPlan& plan, ArrayFormat format, const SafetensorsMetadata& metadata,
                const std::string& path) {
  std::vector<SafetensorsEntry> entries;
  for (const ArrayCopy& copy : plan.arrays) entries.push_back(copy.to);
  ResultFile result(path);
  ArrayOutput output(result.output(), format, entries, metadata);
  for (const ArrayCopy& copy : plan.arrays) {
    const std::string elements = elements_of(file, copy);
    if (elements.size() != static_cast<size_t>(copy.to.shape.count()) * bytes_of_dtype(copy.to.dtype))
      throw Error(Fault::checkpoint, concat(file.path(), ": ", copy.from->name, " is ", copy.from->shape, ", expected ",
                                            copy.to.shape, "; the file was changed after the model was loaded"));
    output.write(elements.data());
  }
  output.finish();
  result.commit();
}

}  // namespace dtrain::convert
