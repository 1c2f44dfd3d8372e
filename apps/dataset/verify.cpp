// dtrain-data verify: every checksum, record and image.
#include <fmt/format.h>

#include "apps/dataset/files.h"
#include "data/example.h"
#include "data/image.h"
#include "data/imagenet.h"
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

// Checks what training relies on: the label of a classified image or those of an image's objects, boxes, and pixels.
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
    }
    decoder_.open(std::as_bytes(std::span(example_.bytes("image/encoded"))));
    decoder_.decode();
    return decoder_.warning();
  }

 private:
  data::Example example_;
  data::BoxReader boxes_;
  data::ImageDecoder decoder_;
};

void verify_file(const std::string& path, Findings& findings) {
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
  if (findings.faults > kListed)
    findings.lines.push_back(fmt::format("{}: {} more faults", path, findings.faults - kListed));
}

}  // namespace

int verify(const Arguments& argv) {
  const auto files = parse_record_files(
      argv,
      "Verifies every checksum, parses every record as training does (image/class/label, or for object detection "
      "image/object/class/label; image/object/bbox; image/encoded) and decodes every image. Prints each fault with "
      "file, record and offset; exit code 2 if there is one. An image that decodes with a warning is listed and "
      "counted as damaged, which is not a fault.");
  if (!files) return 0;

  std::vector<Findings> findings(files->paths.size());
  const auto errors = files->for_each([&](size_t i) { verify_file(files->paths[i], findings[i]); });

  uint64_t records = 0, faults = 0, damaged = 0;
  for (size_t i = 0; i < files->paths.size(); ++i) {
    Findings& found = findings[i];
    if (errors[i]) {
      ++found.faults;
      found.lines.push_back(errors[i]->what());
    }
    if (found.records == 0 && found.faults == 0) found.lines.push_back(files->paths[i] + ": holds no record");
    for (const std::string& line : found.lines) fmt::print("{}\n", line);
    records += found.records;
    faults += found.faults;
    damaged += found.damaged;
  }
  fmt::print("{} files, {} records, {} faults, {} damaged images\n", files->paths.size(), records, faults, damaged);
  return faults ? static_cast<int>(Fault::data) : 0;
}

}  // namespace dtrain::dataset
