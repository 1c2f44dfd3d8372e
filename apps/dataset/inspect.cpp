// dtrain-data inspect: a JSON line per file.
#include <filesystem>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/cli/flags.h"
#include "apps/dataset/commands.h"
#include "data/example.h"
#include "libdtrain/core/error.h"
#include "libdtrain/io/record_file.h"

namespace dtrain::dataset {
namespace {

nlohmann::ordered_json describe(const std::string& path) {
  struct Key {
    std::string type;
    uint64_t count = 0, values = 0;
  };
  std::map<std::string, Key, std::less<>> keys;
  RecordReader reader(path);
  data::Example example;
  uint64_t records = 0;
  while (const auto record = reader.next()) {
    try {
      example.parse(record->bytes);
    } catch (const Error& error) {
      throw Error(Fault::data,
                  concat(path, ": offset ", record->offset, ", record ", record->index, ": ", error.what()));
    }
    ++records;
    for (const auto& [name, feature] : example.entries()) {
      if (example.find(name) != &feature) continue;  // a later entry of this name counts
      auto it = keys.try_emplace(std::string(name)).first;
      // A feature without a value has no type in some writers' records: another record may tell it.
      if (it->second.type.empty() || it->second.type == "unset") it->second.type = data::name_of(feature.kind);
      ++it->second.count;
      it->second.values += feature.count;
    }
  }
  nlohmann::ordered_json line = {{"file", path},
                                 {"records", records},
                                 {"bytes", std::filesystem::file_size(path)},
                                 {"compression", reader.compression() == Compression::gzip ? "gzip" : "none"},
                                 {"keys", nlohmann::ordered_json::object()}};
  for (const auto& [name, key] : keys)
    line["keys"][name] = {{"type", key.type}, {"count", key.count}, {"values", key.values}};
  return line;
}

}  // namespace

int inspect(const Arguments& argv) {
  cli::FlagSet flags(
      argv.front(), "FILE...",
      "Prints for each TFRecord file of tf.Examples a line of JSON: file, records, bytes, "
      "compression, and for each key its type, the records that have it and their values. Every checksum "
      "is verified.");
  const std::vector<std::string> files = flags.parse(argv);
  if (flags.wants_help()) {
    fmt::print("{}", flags.help());
    return 0;
  }
  DT_CHECK(!files.empty(), "no file given; see --help");
  int code = 0;
  for (const std::string& file : files) try {
      fmt::print("{}\n", describe(file).dump());
    } catch (const Error& error) {
      fmt::print(stderr, "error: {}\n", error.what());
      code = static_cast<int>(error.fault());
    }
  return code;
}

}  // namespace dtrain::dataset
