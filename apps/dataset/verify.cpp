// dtrain-data verify: every checksum, record and image.
#include <algorithm>

#include <fmt/format.h>

#include "apps/cli/messages.h"
#include "apps/dataset/files.h"
#include "apps/dataset/set_checker.h"
#include "data/detection_record.h"
#include "data/imagenet.h"
#include "data/mnist.h"
#include "libdtrain/io/record_file.h"

namespace dtrain::dataset {
namespace {

// More are counted, but not kept: a file may be all faults.
constexpr uint64_t kListed = 10000;

struct Findings {
  uint64_t records = 0, faults = 0, damaged = 0;
  bool labels_only = false;  // of images in another file, where they are counted
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

void verify_idx(const std::string& path, Findings& findings) {
  const data::IdxArray array = data::read_idx(path);
  findings.records = array.items();
  findings.labels_only = array.shape.size() == 1;
  if (findings.labels_only) data::check_labels_of(array);
}

}  // namespace

int verify(const Arguments& argv) {
  const auto files = parse_data_files(
      argv,
      "Verifies every checksum, parses every record as training does (image/class/label, or for object detection "
      "image/object/class/label and all other lists of objects; image/object/bbox; image/encoded) and decodes every "
      "image and mask. Prints each fault with "
      "file, record and offset; exit code 2 if there is one. An image that decodes with a warning is listed and "
      "counted as damaged, which is not a fault. Shards that dtrain-data has written are compared with the list in "
      "the file .shards: one that is missing or comes from elsewhere is a fault, and so is a gap in the numbers of "
      "shards from elsewhere. IDX files, as MNIST's are, are checked for their sizes, their labels for being the "
      "classes of as many images.",
      true);
  if (!files) return 0;

  std::vector<Findings> findings(files->paths.size());
  const SetChecker sets(*files);
  const auto errors = files->for_each([&](size_t i) {
    const std::string& path = files->paths[i];
    is_idx_file(path) ? verify_idx(path, findings[i]) : verify_file(path, sets, findings[i]);
  });

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
    if (!found.labels_only) records += found.records;
    faults += found.faults;
    damaged += found.damaged;
  }
  fmt::print("{} files, {} records, {} faults, {} damaged images\n", files->paths.size(), records, faults, damaged);
  return faults ? static_cast<int>(worst) : 0;
}

}  // namespace dtrain::dataset
