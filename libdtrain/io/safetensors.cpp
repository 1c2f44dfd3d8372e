#include "dtrain/io/safetensors.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "libdtrain/io/element_types.h"
#include "libdtrain/io/foreign_file.h"
#include "libdtrain/io/safetensors_header.h"
#include "libdtrain/io/utf8.h"

namespace dtrain {
namespace {

constexpr uint64_t kPrefix = 8;  // size of the header's length field

void refuse_foreign(const InputFile& file, Fault fault) {
  std::string begin(kForeignBytes, '\0');
  begin.resize(file.read_some(0, begin.data(), begin.size()));
  if (const std::string what = foreign_weights(begin); !what.empty())
    throw Error(fault, concat(file.path(), ": ", what));
}

std::string read_header(const InputFile& file, Fault fault) {
  refuse_foreign(file, fault);
  if (file.size() < kPrefix)
    throw Error(fault, concat(file.path(), ": not a safetensors file: ", file.size(), " bytes, expected at least 8"));
  uint64_t size = 0;
  file.read(0, &size, kPrefix);
  if (size > kMaxSafetensorsHeader || size > file.size() - kPrefix)
    throw Error(fault,
                concat(file.path(), ": not a safetensors file, or truncated: header of ", size, " bytes, ",
                       file.size() - kPrefix, " bytes left in the file, at most ", kMaxSafetensorsHeader, " allowed"));
  std::string header(size, '\0');
  file.read(kPrefix, header.data(), size);
  if (!header.starts_with('{'))
    throw Error(fault, concat(file.path(), ": not a safetensors file: its header does not begin with {"));
  return header;
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::string& path, Fault fault) : file_(path, fault) {
  const std::string json = read_header(file_, fault);
  SafetensorsHeader header = parse_safetensors_header(json, path, fault);
  metadata_ = std::move(header.metadata);
  entries_ = std::move(header.entries);
  std::sort(entries_.begin(), entries_.end(), [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
    return a.offset != b.offset ? a.offset < b.offset : a.bytes < b.bytes;
  });
  const uint64_t begin = kPrefix + json.size();
  uint64_t end = 0;
  for (size_t i = 0; i < entries_.size(); ++i) {
    SafetensorsEntry& entry = entries_[i];
    if (entry.offset != end)
      throw Error(fault, concat(path, ": safetensors header: tensor \"", entry.name, "\": data begins at ",
                                entry.offset, ", expected ", end, " (", entry.offset < end ? "overlap" : "gap", ")"));
    end += entry.bytes;
    entry.offset += begin;
    by_name_[entry.name] = i;
  }
  if (end != file_.size() - begin)
    throw Error(fault, concat(path, ": the tensors take ", end, " bytes, the file holds ", file_.size() - begin,
                              end > file_.size() - begin ? " (truncated)" : " (trailing bytes)"));
}

const SafetensorsEntry* SafetensorsFile::find(const std::string& name) const {
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : &entries_[it->second];
}

std::vector<float> SafetensorsFile::read_floats(const SafetensorsEntry& entry) const {
  DT_CHECK(is_floating(entry.dtype), path(), ": tensor \"", entry.name, "\" of type ", entry.dtype,
           "; expected F32, F16, BF16 or F64");
  if (entry.dtype != "F32") return floats_of(entry.dtype, read_bytes(entry));
  std::vector<float> values(static_cast<size_t>(entry.shape.count()));
  read(entry, values.data());
  return values;
}

std::string SafetensorsFile::read_bytes(const SafetensorsEntry& entry) const {
  std::string elements(static_cast<size_t>(entry.bytes), '\0');
  read(entry, elements.data());
  return elements;
}

bool is_floating(const std::string& dtype) {
  return dtype == "F32" || dtype == "F16" || dtype == "BF16" || dtype == "F64";
}

std::string safetensors_dtype(DType dtype) {
  std::string name = name_of(dtype);
  for (char& c : name)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return name;
}

std::string safetensors_header(std::span<const TensorSpec> tensors, const SafetensorsMetadata& metadata) {
  return safetensors_header(entries_of(tensors), metadata);
}

std::vector<SafetensorsEntry> entries_of(std::span<const TensorSpec> tensors) {
  std::vector<SafetensorsEntry> entries;
  for (const TensorSpec& one : tensors) entries.push_back({one.name, safetensors_dtype(one.dtype), one.shape});
  return entries;
}

std::string safetensors_header(std::span<const SafetensorsEntry> tensors, const SafetensorsMetadata& metadata) {
  auto json = nlohmann::ordered_json::object();
  auto& members = json.get_ref<nlohmann::ordered_json::object_t&>();  // a vector, whose search by name is linear
  if (!metadata.empty()) json["__metadata__"] = metadata;
  std::set<std::string_view> names = {"__metadata__"};
  uint64_t offset = 0;
  for (const SafetensorsEntry& tensor : tensors) {
    DT_CHECK(names.insert(tensor.name).second, "safetensors: tensor \"", tensor.name,
             "\" given twice, or its name is reserved");
    if (!is_utf8(tensor.name))
      throw Error(Fault::checkpoint, concat("safetensors: the name of tensor \"", tensor.name, "\" is not UTF-8"));
    const uint64_t end = offset + static_cast<uint64_t>(tensor.shape.count()) * bytes_of_dtype(tensor.dtype);
    auto shape = nlohmann::ordered_json::array();
    for (int i = 0; i < tensor.shape.rank(); ++i) shape.push_back(tensor.shape[i]);
    members.emplace_back(
        tensor.name,
        nlohmann::ordered_json{{"dtype", tensor.dtype}, {"shape", std::move(shape)}, {"data_offsets", {offset, end}}});
    offset = end;
  }
  std::string text = json.dump();
  text.append((kPrefix - text.size() % kPrefix) % kPrefix, ' ');  // spaces are allowed: aligns the data
  const uint64_t size = text.size();
  return std::string(reinterpret_cast<const char*>(&size), kPrefix) + text;
}

}  // namespace dtrain
