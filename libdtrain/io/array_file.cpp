#include "libdtrain/io/array_file.h"

#include <algorithm>
#include <string_view>

#include "libdtrain/io/input_file.h"

namespace dtrain {
namespace {

constexpr std::string_view kMember = "PK\3\4", kEmptyArchive = "PK\5\6";
constexpr size_t kSafetensorsPrefix = 8;  // of safetensors: what follows is a brace

std::string first_bytes(const std::string& path, Fault fault) {
  std::string bytes(kSafetensorsPrefix + 1, '\0');
  bytes.resize(InputFile(path, fault).read_some(0, bytes.data(), bytes.size()));
  return bytes;
}

bool is_archive(const std::string& path, const std::string& begin) {
  return path.ends_with(".npz") || begin.starts_with(kMember) || begin.starts_with(kEmptyArchive);
}

// Protocols 2 to 5; no file of safetensors has another ninth byte.
bool is_pickle(const std::string& begin) {
  return begin.size() > 1 && begin[0] == '\x80' && begin[1] >= 2 && begin[1] <= 5 && !begin.ends_with('{');
}

// PyTorch's files are pickles, or archives with one.
bool has_pickle(const std::string& path, const std::string& begin, Fault fault) {
  if (!is_archive(path, begin)) return is_pickle(begin);
  const ZipFile zip(path, fault);
  return std::ranges::any_of(zip.members(), [](const ZipMember& one) { return one.name.ends_with("/data.pkl"); });
}

}  // namespace

ArrayFile::ArrayFile(const std::string& path, Fault fault) : path_(path) {
  const std::string begin = first_bytes(path, fault);
  if (has_pickle(path, begin, fault))
    throw Error(fault, path +
                           ": pickled Python objects, which are not read, for they can run any program; expected "
                           "safetensors or NumPy's .npz");
  if (is_archive(path, begin)) {
    for (const NpzEntry& entry : file_.emplace<NpzFile>(path, fault).entries())
      entries_.push_back({entry.name, entry.array.dtype, entry.array.shape});
  } else {
    for (const SafetensorsEntry& entry : file_.emplace<SafetensorsFile>(path, fault).entries())
      entries_.push_back({entry.name, entry.dtype, entry.shape});
  }
  for (size_t i = 0; i < entries_.size(); ++i) by_name_[entries_[i].name] = i;
}

ArrayFormat ArrayFile::format() const {
  return std::holds_alternative<NpzFile>(file_) ? ArrayFormat::npz : ArrayFormat::safetensors;
}

const ArrayEntry* ArrayFile::find(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &entries_[found->second];
}

bool ArrayFile::readable(const ArrayEntry& entry) const { return format() == ArrayFormat::npz || entry.dtype == "F32"; }

std::vector<float> ArrayFile::read(const ArrayEntry& entry) const {
  if (const NpzFile* const archive = std::get_if<NpzFile>(&file_)) return archive->read(*archive->find(entry.name));
  DT_CHECK(readable(entry), path_, ": tensor \"", entry.name, "\" of type ", entry.dtype, "; expected F32");
  std::vector<float> values(static_cast<size_t>(entry.shape.count()));
  const auto& file = std::get<SafetensorsFile>(file_);
  file.read(*file.find(entry.name), values.data());
  return values;
}

ArrayOutput::ArrayOutput(OutputFile& file, ArrayFormat format, std::span<const TensorSpec> plan)
    : file_(file), plan_(plan.begin(), plan.end()) {
  if (format == ArrayFormat::npz)
    archive_.emplace(file);
  else
    file.write(safetensors_header(plan, {{"format", "pt"}}));
}

void ArrayOutput::write(const void* data) {
  DT_CHECK(written_ < plan_.size(), "an array more than the ", plan_.size(), " that were planned");
  const TensorSpec& array = plan_[written_++];
  if (archive_)
    archive_->add(array, data);
  else
    file_.write(data, static_cast<size_t>(array.shape.count()) * size_of(array.dtype));
}

void ArrayOutput::finish() {
  DT_CHECK(written_ == plan_.size(), written_, " arrays written of ", plan_.size(), " that were planned");
  if (archive_) archive_->finish();
}

}  // namespace dtrain
