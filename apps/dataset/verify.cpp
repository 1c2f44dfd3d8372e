// dtrain-data verify: every checksum, record and image.
#include <atomic>
#include <filesystem>
#include <mutex>
#include <thread>

#include <fmt/format.h>

#include "apps/cli/flags.h"
#include "apps/dataset/commands.h"
#include "apps/dataset/files.h"
#include "data/example.h"
#include "data/image.h"
#include "libdtrain/io/record_file.h"

namespace dtrain::dataset {
namespace {

struct Findings {
  uint64_t records = 0, damaged = 0;
  std::vector<std::string> faults;
};

// What one record must satisfy to be trained on: it parses, has a label and an image, and the image decodes.
void check_record(const Record& record, data::Example& example, data::ImageDecoder& decoder, Findings& findings) {
  example.parse(record.bytes);
  example.int64("image/class/label");
  decoder.open(std::as_bytes(std::span(example.bytes("image/encoded"))));
  decoder.decode();
  if (!decoder.warning().empty()) ++findings.damaged;
}

Findings verify_file(const std::string& path) {
  Findings findings;
  data::Example example;
  data::ImageDecoder decoder;
  try {
    RecordReader reader(path);
    for (;;) {
      std::optional<Record> record;
      try {
        record = reader.next();
        if (!record) break;
        ++findings.records;
        check_record(*record, example, decoder, findings);
      } catch (const RecordError& error) {
        ++findings.records;
        findings.faults.push_back(error.what());
      } catch (const Error& error) {
        findings.faults.push_back(
            fmt::format("{}: offset {}, record {}: {}", path, record->offset, record->index, error.what()));
      }
    }
  } catch (const Error& error) {
    findings.faults.push_back(error.what());
  }
  return findings;
}

}  // namespace

int verify(const Arguments& argv) {
  int64_t threads = 0;
  cli::FlagSet flags(
      argv.front(), "DIR|FILE... [flags]",
      "Verifies every checksum, parses every record and decodes every image. Prints each fault with file, "
      "offset and record; exit code 2 if there is one. An image that decodes with warnings is counted as "
      "damaged, which is not a fault.");
  flags.add("threads", threads, "worker threads, a file each; 0: one per core", cli::kNotNegative);
  const std::vector<std::string> places = flags.parse(argv);
  if (flags.wants_help()) {
    fmt::print("{}", flags.help());
    return 0;
  }
  const std::vector<std::string> files = record_files(places);
  std::vector<Findings> findings(files.size());
  for_each_file(files, threads, "files", [&](size_t i) { findings[i] = verify_file(files[i]); });

  Findings total;
  for (const Findings& found : findings) {
    total.records += found.records;
    total.damaged += found.damaged;
    for (const std::string& fault : found.faults) fmt::print("{}\n", fault);
    total.faults.insert(total.faults.end(), found.faults.begin(), found.faults.end());
  }
  fmt::print("{} files, {} records, {} faults, {} damaged images\n", files.size(), total.records, total.faults.size(),
             total.damaged);
  return total.faults.empty() ? 0 : static_cast<int>(Fault::data);
}

}  // namespace dtrain::dataset
