#include "dtrain/io/array_file.h"

#include <algorithm>
#include <string_view>

#include "dtrain/io/input_file.h"
#include "libdtrain/io/element_types.h"
#include "libdtrain/io/foreign_file.h"
#include "libdtrain/io/safetensors_header.h"
#include "libdtrain/io/zip.h"

namespace dtrain {
namespace {

constexpr std::string_view kMember = "PK\3\4", kEmptyArchive = "PK\5\6";

std::string first_bytes(const std::string& path, Fault fault) {
  std::string bytes(kForeignBytes, '\0');
  bytes.resize(InputFile(path, fault).read_some(0, bytes.data(), bytes.size()));
  return bytes;
}

bool is_archive(const std::string& path, std::string_view begin) {
  return path.ends_with(".npz") || begin.starts_with(kMember) || begin.starts_with(kEmptyArchive);
}

// Members of .npz end with .npy; PyTorch's archives have a pickle.
bool holds_pickle(const std::string& path, Fault fault) {
  const ZipFile zip(path, fault);
  return std::ranges::any_of(zip.members(), [](const ZipMember& one) { return one.name.ends_with(".pkl"); });
}

bool is_torch(const std::string& path, std::string_view begin, Fault fault) {
  if (begins_safetensors(begin)) return false;
  return begin.starts_with(kMember) ? holds_pickle(path, fault) : begins_torch_file(begin);
}

// "optimizer, epoch; the weights are under model"
std::string left_out_of(const TorchFile& file) {
  std::string text;
  for (const std::string& key : file.others()) text += (text.empty() ? "" : ", ") + key;
  return file.location().empty() ? text
                                 : concat(text, text.empty() ? "" : "; ", "the weights are under ", file.location());
}

}  // namespace

std::vector<std::string_view> unwrapped_names(std::string_view name) {
  constexpr size_t kMostWrappers = 4;  // bound for hostile names
  std::vector<std::string_view> inner;
  for (bool found = true; found && inner.size() < kMostWrappers;) {
    found = false;
    for (const std::string_view wrapper : {"module.", "_orig_mod.", "model."}) {
      if (found || !name.starts_with(wrapper) || name.size() == wrapper.size()) continue;
      inner.push_back(name = name.substr(wrapper.size()));
      found = true;
    }
  }
  return inner;
}

ArrayFile::ArrayFile(const std::string& path, Fault fault) : path_(path) {
  const std::string begin = first_bytes(path, fault);
  const auto add = [this](const auto& entries) {
    for (const auto& entry : entries) entries_.push_back({entry.name, entry.dtype, entry.shape});
  };
  if (is_torch(path, begin, fault)) {
    const TorchFile& file = file_.emplace<TorchFile>(path, fault);
    add(file.entries());
    left_out_ = left_out_of(file);
  } else if (const std::string what = foreign_weights(begin); !what.empty()) {
    throw Error(fault, concat(path, ": ", what));
  } else if (is_archive(path, begin)) {
    for (const NpzEntry& entry : file_.emplace<NpzFile>(path, fault).entries())
      entries_.push_back({entry.name, entry.array.dtype, entry.array.shape});
  } else if (path.ends_with(".json")) {
    add(file_.emplace<SafetensorsShards>(path, fault).entries());
  } else {
    add(file_.emplace<SafetensorsFile>(path, fault).entries());
  }
  for (size_t i = 0; i < entries_.size(); ++i) by_name_[entries_[i].name] = i;
  for (size_t i = 0; i < entries_.size(); ++i)
    for (const std::string_view inner : unwrapped_names(entries_[i].name)) by_name_.emplace(inner, i);
}

ArrayFormat ArrayFile::format() const {
  if (std::holds_alternative<TorchFile>(file_)) return ArrayFormat::torch;
  return std::holds_alternative<NpzFile>(file_) ? ArrayFormat::npz : ArrayFormat::safetensors;
}

const ArrayEntry* ArrayFile::find(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &entries_[found->second];
}

bool ArrayFile::readable(const ArrayEntry& entry) const {
  return format() == ArrayFormat::npz || is_floating(entry.dtype);
}

std::vector<float> ArrayFile::read(const ArrayEntry& entry) const {
  if (const auto* const archive = std::get_if<NpzFile>(&file_)) return archive->read(*archive->find(entry.name));
  if (const auto* const shards = std::get_if<SafetensorsShards>(&file_)) return shards->read_floats(entry.name);
  if (const auto* const file = std::get_if<TorchFile>(&file_)) return file->read_floats(entry.name);
  const auto& file = std::get<SafetensorsFile>(file_);
  return file.read_floats(*file.find(entry.name));
}

std::string ArrayFile::safetensors_type(const ArrayEntry& entry) const {
  if (format() == ArrayFormat::npz) return std::string(dtype_of_numpy(entry.dtype));
  return bytes_of_dtype(entry.dtype) > 0 ? entry.dtype : "";
}

std::string ArrayFile::read_bytes(const ArrayEntry& entry) const {
  if (const auto* const archive = std::get_if<NpzFile>(&file_)) return archive->read_bytes(*archive->find(entry.name));
  if (const auto* const shards = std::get_if<SafetensorsShards>(&file_)) return shards->read_bytes(entry.name);
  if (const auto* const file = std::get_if<TorchFile>(&file_)) return file->read_bytes(entry.name);
  const auto& file = std::get<SafetensorsFile>(file_);
  return file.read_bytes(*file.find(entry.name));
}

SafetensorsMetadata ArrayFile::metadata() const {
  const auto* const file = std::get_if<SafetensorsFile>(&file_);
  return file ? file->metadata() : SafetensorsMetadata{};
}

ArrayOutput::ArrayOutput(OutputFile& file, ArrayFormat format, std::span<const TensorSpec> plan,
                         const SafetensorsMetadata& metadata)
    : ArrayOutput(file, format, entries_of(plan), metadata) {}

ArrayOutput::ArrayOutput(OutputFile& file, ArrayFormat format, std::span<const SafetensorsEntry> plan,
                         const SafetensorsMetadata& metadata)
    : file_(file), plan_(plan.begin(), plan.end()) {
  DT_CHECK(format != ArrayFormat::torch, "files of PyTorch are read, not written");
  if (format == ArrayFormat::npz)
    archive_.emplace(file);
  else
    file.write(safetensors_header(plan, metadata));
}

void ArrayOutput::write(const void* data) {
  DT_CHECK(written_ < plan_.size(), "more arrays than the ", plan_.size(), " that were planned");
  const SafetensorsEntry& array = plan_[written_++];
  if (archive_)
    archive_->add(array, data);
  else
    file_.write(data, static_cast<size_t>(array.shape.count()) * bytes_of_dtype(array.dtype));
}

void ArrayOutput::finish() {
  DT_CHECK(written_ == plan_.size(), written_, " arrays written of ", plan_.size(), " that were planned");
  if (archive_) archive_->finish();
}

}  // namespace dtrain
