#include <nlohmann/json.hpp>

#include "dtrain/io/safetensors.h"
#include "libdtrain/io/json_limits.h"

namespace dtrain {
namespace {

constexpr size_t kLargestIndex = size_t{32} << 20;
constexpr size_t kMostFiles = 1000;
constexpr JsonLimits kIndexLimits{.bytes = kLargestIndex, .depth = 4, .keys = 200'000, .values = 400'000};

// File of each tensor.
std::map<std::string, std::string> weight_map(const std::string& index, Fault fault) {
  const auto json = parse_json<nlohmann::json>(read_text(index, kLargestIndex, fault), index, fault, kIndexLimits);
  std::map<std::string, std::string> files;
  if (json.is_object() && json.contains("weight_map") && json["weight_map"].is_object())
    for (const auto& [tensor, file] : json["weight_map"].items())
      if (file.is_string()) files[tensor] = file.get<std::string>();
  if (files.empty() || files.size() != json["weight_map"].size())
    throw Error(fault,
                concat(index, ": no index of safetensors files; expected {\"weight_map\": {TENSOR: FILE, ...}}"));
  return files;
}

}  // namespace

SafetensorsShards::SafetensorsShards(const std::string& index, Fault fault) {
  const std::map<std::string, std::string> files = weight_map(index, fault);
  const std::string folder = index.substr(0, index.rfind('/') + 1);  // empty without a slash
  std::map<std::string, size_t> opened;
  for (const auto& [tensor, name] : files) {
    if (name.empty() || name.find('/') != name.npos || name.find('\0') != name.npos)
      throw Error(fault, concat(index, ": tensor ", tensor, ": expected the name of a file in the same folder"));
    opened.emplace(name, 0);
  }
  if (opened.size() > kMostFiles)
    throw Error(fault, concat(index, ": ", opened.size(), " files, expected at most ", kMostFiles));
  for (auto& [name, number] : opened) {
    number = files_.size();
    files_.emplace_back(folder + name, fault);
    for (const SafetensorsEntry& entry : files_.back().entries()) {
      const auto listed = files.find(entry.name);
      if (listed == files.end() || listed->second != name)
        throw Error(fault, concat(folder, name, ": tensor ", entry.name, " is not listed in ", index));
      entries_.push_back(entry);
      file_of_[entry.name] = number;
    }
  }
  for (const auto& [tensor, name] : files)
    if (!file_of_.contains(tensor))
      throw Error(fault, concat(folder, name, ": there is no tensor ", tensor, ", which ", index, " lists"));
}

const SafetensorsFile& SafetensorsShards::file_of(const std::string& name) const {
  const auto found = file_of_.find(name);
  DT_CHECK(found != file_of_.end(), "there is no tensor ", name);
  return files_[found->second];
}

std::vector<float> SafetensorsShards::read_floats(const std::string& name) const {
  const SafetensorsFile& file = file_of(name);
  return file.read_floats(*file.find(name));
}

std::string SafetensorsShards::read_bytes(const std::string& name) const {
  const SafetensorsFile& file = file_of(name);
  return file.read_bytes(*file.find(name));
}

}  // namespace dtrain
