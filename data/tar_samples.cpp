#include "data/tar_samples.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <map>
#include <utility>

#include <nlohmann/json.hpp>

#include "data/index_file.h"
#include "data/tar.h"
#include "dtrain/core/error.h"
#include "dtrain/io/record_file.h"
#include "libdtrain/core/lower_case.h"
#include "libdtrain/io/crc32c.h"
#include "libdtrain/io/json_limits.h"

namespace dtrain::data {
namespace {

constexpr std::array kImageExtensions = {"jpg", "jpeg", "png", "webp", "gif", "bmp", "tif", "tiff"};
constexpr size_t kMostClassBytes = 64, kMostJsonBytes = size_t{1} << 20;

struct TarIndexHeader {
  char magic[8] = {'D', 'T', 'W', 'D', 'S', '0', '0', '2'};
  uint64_t file_bytes = 0;
  int64_t modified = 0;
  uint64_t samples = 0, key_bytes = 0, without_image = 0, links = 0;
};

struct TarIndexEntry {
  uint64_t offset = 0, bytes = 0;
  int64_t label = 0;
  uint32_t crc = 0, key_bytes = 0;
};

int64_t label_of_text(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const size_t begin = std::min(text.find_first_not_of(kBlanks), text.size());
  text = text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
  int64_t label = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), label);
  if (wrong != std::errc() || end != text.data() + text.size()) throw Error(Fault::data, "its .cls is not an integer");
  return label;
}

int64_t label_of_json(const std::string& text) {
  const auto json = parse_json<nlohmann::json>(text, "its .json", Fault::data);
  const auto found = json.is_object() ? json.find("label") : json.end();
  if (!json.is_object() || found == json.end() || !found->is_number_integer() ||
      (found->is_number_unsigned() && found->get<uint64_t>() > INT64_MAX))
    throw Error(Fault::data, "its .json has no integer \"label\"");
  return found->get<int64_t>();
}

class TarSampleReader {
 public:
  explicit TarSampleReader(const InputFile& file) : file_(file) {}

  TarSamples read() {
    ReadableTar tar = readable_tar_members(file_);
    for (TarMember& member : tar.members) {
      std::optional<TarKey> key = tar_key(member.name);
      if (!key) continue;
      if (key->key != key_) finish();
      key_ = std::move(key->key);
      if (!members_.emplace(key->extension, std::move(member)).second)
        fault_of_sample("two members ." + key->extension);
    }
    finish();
    if (!tar.fault.empty()) found_.faults.push_back(std::move(tar.fault));
    found_.links = tar.links;
    return std::move(found_);
  }

 private:
  void fault_of_sample(const std::string& reason) {
    found_.faults.push_back(concat(file_.path(), ": sample ", key_, ": ", reason));
    is_faulty_ = true;
  }

  void finish() {
    const auto image = std::ranges::find_if(kImageExtensions, [&](const char* one) { return members_.contains(one); });
    if (image != kImageExtensions.end() && !is_faulty_)
      add(members_[*image]);
    else if (image == kImageExtensions.end() && !members_.empty())
      ++found_.without_image;
    members_.clear();
    is_faulty_ = false;
  }

  void add(const TarMember& image) {
    try {
      const std::string bytes = bytes_of(image, kMaxRecordBytes, "its image");
      found_.samples.push_back({key_, image.offset, image.size, crc32c(bytes.data(), bytes.size()), label()});
    } catch (const Error& error) {
      if (error.fault() != Fault::data) throw;
      fault_of_sample(error.what());
    }
  }

  int64_t label() const {
    if (const auto cls = members_.find("cls"); cls != members_.end())
      return label_of_text(bytes_of(cls->second, kMostClassBytes, "its .cls"));
    if (const auto json = members_.find("json"); json != members_.end())
      return label_of_json(bytes_of(json->second, kMostJsonBytes, "its .json"));
    throw Error(Fault::data, "no .cls and no .json");
  }

  std::string bytes_of(const TarMember& member, uint64_t limit, const char* what) const {
    if (member.size > limit)
      throw Error(Fault::data, concat(what, " has ", member.size, " bytes, expected at most ", limit));
    std::string bytes(static_cast<size_t>(member.size), '\0');
    file_.read(member.offset, bytes.data(), bytes.size());
    return bytes;
  }

  const InputFile& file_;
  TarSamples found_;
  std::string key_;  // of the sample that is being collected
  std::map<std::string, TarMember, std::less<>> members_;
  bool is_faulty_ = false;
};

}  // namespace

std::optional<TarKey> tar_key(std::string_view name) {
  const size_t slash = name.rfind('/'), base = slash == name.npos ? 0 : slash + 1;
  const size_t dot = name.find('.', base);
  if (dot == name.npos || dot == base) return std::nullopt;
  const std::string_view first = name.substr(0, name.find('/'));
  if (first.size() >= 4 && first.starts_with("__") && first.ends_with("__")) return std::nullopt;
  return TarKey{std::string(name.substr(0, dot)), lower_case(std::string(name.substr(dot + 1)))};
}

TarSamples read_tar_samples(const InputFile& file) { return TarSampleReader(file).read(); }

std::string tar_index_body(const TarSamples& samples, uint64_t file_bytes, int64_t modified) {
  TarIndexHeader header;
  header.file_bytes = file_bytes;
  header.modified = modified;
  header.samples = samples.samples.size();
  header.without_image = samples.without_image;
  header.links = samples.links;
  for (const TarSample& sample : samples.samples) header.key_bytes += sample.key.size();
  std::string body(reinterpret_cast<const char*>(&header), sizeof header);
  for (const TarSample& sample : samples.samples) {
    const TarIndexEntry entry{sample.offset, sample.bytes, sample.label, sample.crc,
                              static_cast<uint32_t>(sample.key.size())};
    body.append(reinterpret_cast<const char*>(&entry), sizeof entry);
  }
  for (const TarSample& sample : samples.samples) body += sample.key;
  return body;
}

std::optional<TarSamples> tar_index_from(std::string_view body, uint64_t file_bytes, int64_t modified) {
  TarIndexHeader header;
  const TarIndexHeader expected;
  if (body.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, body.data(), sizeof header);
  body.remove_prefix(sizeof header);
  if (std::memcmp(header.magic, expected.magic, sizeof header.magic) != 0 || header.file_bytes != file_bytes ||
      header.modified != modified || header.samples > body.size() / sizeof(TarIndexEntry) ||
      header.key_bytes != body.size() - header.samples * sizeof(TarIndexEntry))
    return std::nullopt;
  std::string_view keys = body.substr(header.samples * sizeof(TarIndexEntry));
  TarSamples found{
      .samples = std::vector<TarSample>(header.samples), .without_image = header.without_image, .links = header.links};
  for (size_t i = 0; i < header.samples; ++i) {
    TarIndexEntry entry;
    std::memcpy(&entry, body.data() + i * sizeof entry, sizeof entry);
    if (entry.key_bytes > keys.size() || entry.bytes > kMaxRecordBytes || entry.bytes > file_bytes ||
        entry.offset > file_bytes - entry.bytes)
      return std::nullopt;
    found.samples[i] = {std::string(keys.substr(0, entry.key_bytes)), entry.offset, entry.bytes, entry.crc,
                        entry.label};
    keys.remove_prefix(entry.key_bytes);
  }
  return keys.empty() ? std::optional(std::move(found)) : std::nullopt;
}

TarSamples open_tar_samples(const InputFile& file, const std::string& cache_directory) {
  const int64_t modified = file.revision();
  // A sample takes at least two blocks of 512 bytes; its key is shorter than the archive.
  const size_t limit = sizeof(TarIndexHeader) + file.size();
  for (const std::string& place : index_places(file.path(), cache_directory))
    if (const auto body = load_index(place, limit))
      if (auto known = tar_index_from(*body, file.size(), modified)) return *std::move(known);
  TarSamples samples = read_tar_samples(file);
  if (samples.faults.empty()) save_index(file.path(), cache_directory, tar_index_body(samples, file.size(), modified));
  return samples;
}

}  // namespace dtrain::data
