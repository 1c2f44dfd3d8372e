// dtrain-data verify: verifies every checksum, record and image.
#include <algorithm>

#include <fmt/format.h>

#include "apps/cli/messages.h"
#include "apps/dataset/files.h"
#include "apps/dataset/record_checker.h"
#include "apps/dataset/set_checker.h"
#include "dtrain/data/bad_record.h"
#include "dtrain/data/mnist.h"
#include "dtrain/io/record_file.h"

namespace dtrain::dataset {
namespace {

// Limit of stored faults; further faults are only counted.
constexpr uint64_t kListed = 10000;

struct Findings {
  uint64_t records = 0, faults = 0, damaged = 0, warned = 0;
  bool labels_only = false;  // labels of images in another file, which are counted there
  std::vector<std::string> lines;

  void fault(const std::string& line) { note(faults, line); }
  void note(uint64_t& count, const std::string& line) {
    if (++count <= kListed) lines.push_back(line);
  }
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
      const PixelFaults pixels = checker.check(record->bytes);
      if (!pixels.damage.empty())
        findings.note(findings.damaged, place + data::damaged_image(pixels.damage));
      else if (!pixels.warning.empty())
        findings.note(findings.warned, place + "image with a warning: " + pixels.warning);
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
      "image and mask. Prints each fault and each damaged image with file, record and offset; exit code 2 if there is "
      "one. Images with mere decoder warnings are listed, but are no faults. Shards written by dtrain-data are "
      "compared with their manifest .shards: a missing or foreign shard is a fault, and so is a gap in the numbering "
      "of other shards. Of IDX files, such as MNIST's, the sizes, the label values and the number of labels are "
      "checked.",
      true);
  if (!files) return 0;

  std::vector<Findings> findings(files->paths.size());
  const SetChecker sets(*files);
  const auto errors = files->for_each([&](size_t i) {
    const std::string& path = files->paths[i];
    is_idx_file(path) ? verify_idx(path, findings[i]) : verify_file(path, sets, findings[i]);
  });

  uint64_t records = 0, faults = sets.faults().size(), damaged = 0, warned = 0;
  Fault worst = Fault::data;
  for (const std::string& line : sets.faults()) fmt::print("{}\n", cli::escaped(line));
  for (size_t i = 0; i < files->paths.size(); ++i) {
    Findings& found = findings[i];
    if (errors[i]) {
      ++found.faults;
      found.lines.push_back(errors[i]->what());
      if (errors[i]->fault() != Fault::data) worst = errors[i]->fault();  // not verified
    }
    if (found.records == 0 && found.faults == 0) found.lines.push_back(files->paths[i] + ": holds no record");
    for (const std::string& line : found.lines) fmt::print("{}\n", cli::escaped(line));
    if (!found.labels_only) records += found.records;
    faults += found.faults;
    damaged += found.damaged;
    warned += found.warned;
  }
  fmt::print("{} files, {} records, {} faults, {} damaged images{}\n", files->paths.size(), records, faults, damaged,
             warned > 0 ? fmt::format(", {} images with warnings", warned) : "");
  return faults + damaged > 0 ? static_cast<int>(worst) : 0;
}

}  // namespace dtrain::dataset
