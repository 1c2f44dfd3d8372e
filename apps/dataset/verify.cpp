// dtrain-data verify: every checksum, record and image.
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include <fmt/format.h>

#include "apps/cli/messages.h"
#include "apps/dataset/files.h"
#include "data/detection_record.h"
#include "data/imagenet.h"
#include "data/shard_manifest.h"
#include "libdtrain/io/record_file.h"

namespace dtrain::dataset {
namespace {

// More are counted, but not kept: a file may be all faults.
constexpr uint64_t kListed = 10000;

struct Findings {
  uint64_t records = 0, faults = 0, damaged = 0;
  std::vector<std::string> lines;

  void fault(const std::string& line) {
    if (++faults <= kListed) lines.push_back(line);
  }
};

// Checks what training relies on: the label of a classified image or those of an image's objects, boxes, masks, and
// pixels.
class RecordChecker {
 public:
  // The decoder's warning where the image is damaged, else "". Throws Error(Fault::data).
  std::string check(std::span<const std::byte> record) {
    example_.parse(record);
    const data::Feature* objects = example_.find("image/object/class/label");
    const size_t boxes = boxes_.read(example_).size();
    if (objects == nullptr || example_.find("image/class/label") != nullptr) {
      example_.int64("image/class/label");
    } else if (objects->count != boxes) {
      throw Error(Fault::data, concat(objects->count, " labels in image/object/class/label, ", boxes, " boxes"));
    } else {
      const data::DetectionRecord& image = detection_.read(record);
      for (data::DetectionRecord::Object object : image.objects) {
        data::segmentation_of(object, image.height, image.width);
        object.segmentation = {};  // the PNG, which others read
        data::segmentation_of(object, image.height, image.width);
      }
    }
    decoder_.open(std::as_bytes(std::span(example_.bytes("image/encoded"))));
    decoder_.decode();
    return decoder_.warning();
  }

 private:
  data::Example example_;
  data::BoxReader boxes_;
  data::DetectionRecordReader detection_;
  data::ImageDecoder decoder_;
};

// What the manifests beside shards say of them.
class SetChecker {
 public:
  explicit SetChecker(const RecordFiles& files) {
    for (const std::string& path : files.paths) manifests_[directory_of(path)] = {};
    for (auto& [folder, manifest] : manifests_) {
      try {
        data::require_all_in_place(folder);
        manifest = data::read_shard_manifest(folder).value_or(data::ShardManifest());
      } catch (const Error& error) {
        faults_.emplace_back(error.what());
      }
    }
    for (const std::string& folder : files.folders) find_missing(folder);
  }

  // What is wrong with the sets as such.
  const std::vector<std::string>& faults() const { return faults_; }

  // Throws Error(Fault::data) where the file is not the one that was written with the others.
  void check(const std::string& path) const {
    const std::string folder = directory_of(path), name = std::filesystem::path(path).filename();
    const data::ShardManifest& manifest = manifests_.at(folder);
    const auto listed = manifest.find(name);
    if (listed == manifest.end()) {
      if (has_split(manifest, data::split_of_shard(name)))
        throw Error(Fault::data, concat(path, ": is none of the shards that were written together", advice(folder)));
      return;
    }
    const InputFile file(path);
    const data::ShardFacts found{file.size(), crc32c_of(file)};
    if (found != listed->second)
      throw Error(Fault::data, concat(path, ": is not the shard that was written with the others, but one of ",
                                      to_text(found), ", expected ", to_text(listed->second), advice(folder)));
  }

 private:
  static std::string advice(const std::string& folder) {
    const std::string path = folder + "/" + data::kShardManifest;
    return concat(" (", path, "); make the data set again or, if it was changed on purpose, delete ", path);
  }

  static bool has_split(const data::ShardManifest& manifest, const std::string& split) {
    return std::any_of(manifest.begin(), manifest.end(),
                       [&](const auto& entry) { return data::split_of_shard(entry.first) == split; });
  }

  // A split that has been removed as a whole is not missed.
  void find_missing(const std::string& folder) {
    std::map<std::string, std::vector<std::string>> missing;  // by split
    std::set<std::string> present;                            // splits
    for (const auto& [name, facts] : manifests_.at(folder)) {
      const std::string path = folder + "/" + name, split = data::split_of_shard(name);
      std::error_code unknown;
      if (std::filesystem::exists(path, unknown))
        present.insert(split);
      else
        missing[split].push_back(path);
    }
    for (const std::string& split : present)
      for (const std::string& path : missing[split]) faults_.push_back(concat(path, ": is missing", advice(folder)));
  }

  std::map<std::string, data::ShardManifest> manifests_;  // by folder
  std::vector<std::string> faults_;
};

void verify_file(const std::string& path, const SetChecker& sets, Findings& findings) {
  RecordReader reader(path);
  RecordChecker checker;
  for (;;) {
    std::optional<Record> record;
    try {
      record = reader.next();
    } catch (const RecordError& error) {
      ++findings.records;
      findings.fault(error.what());
      continue;
    }
    if (!record) break;
    ++findings.records;
    const std::string place = fmt::format("{}: record {} at byte {}: ", path, record->index, record->offset);
    try {
      const std::string warning = checker.check(record->bytes);
      if (warning.empty()) continue;
      if (++findings.damaged <= kListed) findings.lines.push_back(place + "damaged image: " + warning);
    } catch (const Error& error) {
      if (error.fault() != Fault::data) throw;
      findings.fault(place + error.what());
    }
  }
  if (findings.faults == 0) sets.check(path);
  if (findings.faults > kListed)
    findings.lines.push_back(fmt::format("{}: {} more faults", path, findings.faults - kListed));
}

}  // namespace

int verify(const Arguments& argv) {
  const auto files = parse_record_files(
      argv,
      "Verifies every checksum, parses every record as training does (image/class/label, or for object detection "
      "image/object/class/label and all other lists of objects; image/object/bbox; image/encoded) and decodes every "
      "image and mask. Prints each fault with "
      "file, record and offset; exit code 2 if there is one. An image that decodes with a warning is listed and "
      "counted as damaged, which is not a fault. Shards that dtrain-data has written are compared with the list in "
      ".shards: one that is missing or comes from elsewhere is a fault.");
  if (!files) return 0;

  std::vector<Findings> findings(files->paths.size());
  const SetChecker sets(*files);
  const auto errors = files->for_each([&](size_t i) { verify_file(files->paths[i], sets, findings[i]); });

  uint64_t records = 0, faults = sets.faults().size(), damaged = 0;
  Fault worst = Fault::data;
  for (const std::string& line : sets.faults()) fmt::print("{}\n", cli::escaped(line));
  for (size_t i = 0; i < files->paths.size(); ++i) {
    Findings& found = findings[i];
    if (errors[i]) {
      ++found.faults;
      found.lines.push_back(errors[i]->what());
      if (errors[i]->fault() != Fault::data) worst = errors[i]->fault();  // it has not been verified
    }
    if (found.records == 0 && found.faults == 0) found.lines.push_back(files->paths[i] + ": holds no record");
    for (const std::string& line : found.lines) fmt::print("{}\n", cli::escaped(line));
    records += found.records;
    faults += found.faults;
    damaged += found.damaged;
  }
  fmt::print("{} files, {} records, {} faults, {} damaged images\n", files->paths.size(), records, faults, damaged);
  return faults ? static_cast<int>(worst) : 0;
}

}  // namespace dtrain::dataset
