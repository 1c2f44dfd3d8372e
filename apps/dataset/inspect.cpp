// dtrain-data inspect: a JSON line per file.
#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/dataset/files.h"
#include "data/example.h"
#include "libdtrain/io/record_file.h"

namespace dtrain::dataset {
namespace {

struct Key {
  std::string type;
  uint64_t records = 0, values = 0;
  uint64_t last_record = UINT64_MAX;
};
using Keys = std::map<std::string, Key, std::less<>>;

void add_features(const data::Example& example, uint64_t record, Keys& keys) {
  const auto& entries = example.entries();
  // From the end: where several entries have one name, the last one counts.
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    auto it = keys.find(entry->key);
    if (it == keys.end()) it = keys.emplace(entry->key, Key{}).first;
    Key& key = it->second;
    if (key.last_record == record) continue;
    key.last_record = record;
    // A feature without a value has no type in some writers' records: another record may tell it.
    if (key.type.empty() || key.type == "unset") key.type = data::name_of(entry->feature.kind);
    ++key.records;
    key.values += entry->feature.count;
  }
}

std::string describe(const std::string& path) {
  Keys keys;
  RecordReader reader(path);
  data::Example example;
  uint64_t records = 0;
  for (; const auto record = reader.next(); ++records) {
    try {
      example.parse(record->bytes);
    } catch (const Error& error) {
      throw Error(Fault::data,
                  concat(path, ": record ", record->index, " at byte ", record->offset, ": ", error.what()));
    }
    add_features(example, record->index, keys);
  }
  using nlohmann::ordered_json;
  ordered_json::object_t features;  // appended to: its operator[] would go through all of them
  for (const auto& [name, key] : keys)
    features.emplace_back(name, ordered_json{{"type", key.type}, {"count", key.records}, {"values", key.values}});
  const ordered_json line = {{"file", path},
                             {"records", records},
                             {"bytes", InputFile(path).size()},
                             {"compression", reader.compression() == Compression::gzip ? "gzip" : "none"},
                             {"keys", std::move(features)}};
  // The name of a file need not be UTF-8.
  return line.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace

int inspect(const Arguments& argv) {
  const auto files = parse_record_files(
      argv,
      "Prints for each TFRecord file of tf.Examples a line of JSON: file, records, bytes, compression, "
      "and for each key its type, the number of records that have it (count) and the number of its values. "
      "Every checksum is verified; a file with a fault has a line on stderr instead.");
  if (!files) return 0;

  std::vector<std::string> lines(files->paths.size());
  const auto errors = files->for_each([&](size_t i) { lines[i] = describe(files->paths[i]); });
  for (size_t i = 0; i < lines.size(); ++i)
    if (!errors[i]) fmt::print("{}\n", lines[i]);
  return report(errors);
}

}  // namespace dtrain::dataset
