#include "data/devkit.h"

#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "data/mat_file.h"
#include "data/tar.h"
#include "dtrain/core/error.h"
#include "libdtrain/io/foreign_file.h"
#include "libdtrain/io/gzip.h"

namespace dtrain::data {
namespace {

constexpr size_t kMaxArchiveBytes = size_t{64} << 20;  // unpacked; the development kit has 8 MiB
constexpr int64_t kClasses = 1000, kImages = 50'000, kImagesPerClass = kImages / kClasses;
constexpr std::string_view kGzipMark = "\x1f\x8b";
constexpr const char* kMeta = "data/meta.mat";
constexpr const char* kGroundTruth = "data/ILSVRC2012_validation_ground_truth.txt";

[[noreturn]] void fail(const std::string& file, const std::string& what) {
  throw Error(Fault::data, concat(file, ": ", what));
}

std::string head_of(const InputFile& file) {
  std::string head(kForeignBytes, '\0');
  head.resize(file.read_some(0, head.data(), head.size()));
  return head;
}

std::string unpacked_archive(const std::string& path) {
  const InputFile file(path);
  const std::string head = head_of(file);
  if (!head.starts_with(kGzipMark)) {
    const std::string kind = foreign_content(head);
    fail(path, concat(kind.empty() ? "not compressed by gzip" : "is " + kind, "; expected ImageNet's development kit, ",
                      "ILSVRC2012_devkit_t12.tar.gz"));
  }
  GzipReader reader(file);
  std::string bytes;
  for (size_t got = 1; got > 0;) {
    const size_t done = bytes.size();
    bytes.resize(done + (size_t{1} << 20));
    got = reader.read(bytes.data() + done, bytes.size() - done);
    bytes.resize(done + got);
    if (bytes.size() > kMaxArchiveBytes)
      fail(path, concat("unpacks to more than ", kMaxArchiveBytes >> 20, " MiB: not ImageNet's development kit"));
  }
  if (reader.fault() != nullptr) fail(path, concat(reader.fault(), "; download the development kit again"));
  return bytes;
}

// A file of the archive.
struct Member {
  std::string name;  // "ARCHIVE: PATH", for errors
  std::string_view bytes;
};

Member member_of(const std::string& path, std::string_view archive, const std::vector<TarMember>& members,
                 const std::string& file) {
  for (const TarMember& member : members)
    if (member.name == file || member.name.ends_with("/" + file))
      return {concat(path, ": ", member.name), archive.substr(member.offset, member.size)};
  fail(path, concat("has no ", file, "; expected ILSVRC2012_devkit_t12.tar.gz, the development kit of tasks 1 and 2"));
}

bool is_wordnet_id(std::string_view text) {
  return text.size() == 9 && text.front() == 'n' && text.find_first_not_of("0123456789", 1) == text.npos;
}

// WordNet ids of the classes, by ILSVRC2012_ID minus 1. Larger ids are inner nodes of the hierarchy.
std::vector<std::string> class_ids(const Member& meta) {
  const std::array<std::string, 2> fields = {"ILSVRC2012_ID", "WNID"};
  std::vector<std::string> ids(kClasses);
  std::set<std::string> seen;
  for (const std::vector<MatValue>& synset : read_mat_structs(meta.bytes, meta.name, "synsets", fields)) {
    const std::vector<double>& number = synset[0].numbers;
    if (number.size() != 1 || !(number[0] >= 1 && number[0] <= 1e6) || number[0] != std::floor(number[0]))
      fail(meta.name, "a synset without a whole number as ILSVRC2012_ID");
    const auto id = static_cast<int64_t>(number[0]);
    if (!is_wordnet_id(synset[1].text))
      fail(meta.name,
           concat("synset ", id, ": its WNID is '", synset[1].text.substr(0, 20), "'; expected one such as n01440764"));
    if (id > kClasses) continue;
    std::string& place = ids[static_cast<size_t>(id - 1)];
    if (!place.empty()) fail(meta.name, concat("two synsets with ILSVRC2012_ID ", id));
    if (!seen.insert(synset[1].text).second) fail(meta.name, concat("two classes with WNID ", synset[1].text));
    place = synset[1].text;
  }
  for (size_t i = 0; i < ids.size(); ++i)
    if (ids[i].empty()) fail(meta.name, concat("no synset with ILSVRC2012_ID ", i + 1, "; expected 1 to ", kClasses));
  return ids;
}

// A number from 1 to kClasses.
std::optional<size_t> class_in(std::string_view line) {
  size_t value = 0;
  for (const char digit : line) {
    if (digit < '0' || digit > '9' || value > kClasses) return std::nullopt;
    value = 10 * value + static_cast<size_t>(digit - '0');
  }
  return value >= 1 && value <= kClasses ? std::optional(value) : std::nullopt;
}

// Numbers from 1 to kClasses, one for each image.
std::vector<size_t> image_classes(const Member& truth) {
  std::vector<size_t> classes;
  std::vector<int64_t> images(kClasses);
  std::string_view rest = truth.bytes;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    const std::optional<size_t> number = class_in(line);
    if (!number)
      fail(truth.name,
           concat("line ", classes.size() + 1, ": '", line.substr(0, 20), "'; expected a class from 1 to ", kClasses));
    classes.push_back(*number);
    ++images[*number - 1];
  }
  if (classes.size() != kImages)
    fail(truth.name, concat(classes.size(), " lines; expected one for each of the ", kImages, " validation images"));
  for (size_t i = 0; i < images.size(); ++i)
    if (images[i] != kImagesPerClass)
      fail(truth.name, concat(images[i], " images of class ", i + 1, "; expected ", kImagesPerClass, " of each class"));
  return classes;
}

}  // namespace

bool is_gzip_file(const std::string& path) { return head_of(InputFile(path)).starts_with(kGzipMark); }

std::vector<std::string> devkit_labels(const std::string& path) {
  const std::string archive = unpacked_archive(path);
  const std::vector<TarMember> members = tar_members(archive, path);
  const std::vector<std::string> ids = class_ids(member_of(path, archive, members, kMeta));
  std::vector<std::string> labels;
  for (const size_t number : image_classes(member_of(path, archive, members, kGroundTruth)))
    labels.push_back(ids[number - 1]);
  return labels;
}

}  // namespace dtrain::data
