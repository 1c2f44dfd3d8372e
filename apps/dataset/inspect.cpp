// dtrain-data inspect: describes files, one JSON line each.
#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/dataset/files.h"
#include "dtrain/data/example.h"
#include "dtrain/data/idx.h"
#include "dtrain/io/record_file.h"

namespace dtrain::dataset {
namespace {

using nlohmann::ordered_json;

struct Key {
  std::string type;
  uint64_t records = 0, values = 0;
  uint64_t last_record = UINT64_MAX;
};
using Keys = std::map<std::string, Key, std::less<>>;

void add_features(const data::Example& example, uint64_t record, Keys& keys) {
  const auto& entries = example.entries();
  // In reverse: the last of several entries with one name counts.
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    auto it = keys.find(entry->key);
    if (it == keys.end()) it = keys.emplace(entry->key, Key{}).first;
    Key& key = it->second;
    if (key.last_record == record) continue;
    key.last_record = record;
    // Some writers omit the type of empty features; another record may have it.
    if (key.type.empty() || key.type == "unset") key.type = data::name_of(entry->feature.kind);
    ++key.records;
    key.values += entry->feature.count;
  }
}

// File names may be invalid UTF-8.
std::string text_of(const ordered_json& line) {
  return line.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

std::string describe_records(const std::string& path) {
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
  ordered_json::object_t features;  // append: its operator[] is linear in the number of keys
  for (const auto& [name, key] : keys)
    features.emplace_back(name, ordered_json{{"type", key.type}, {"count", key.records}, {"values", key.values}});
  const ordered_json line = {{"file", path},
                             {"records", records},
                             {"bytes", InputFile(path).size()},
                             {"compression", reader.compression() == Compression::gzip ? "gzip" : "none"},
                             {"keys", std::move(features)}};
  return text_of(line);
}

std::string describe_idx(const std::string& path) {
  const data::IdxArray array = data::read_idx(path);
  ordered_json line = {{"file", path},
                       {"items", array.items()},
                       {"bytes", InputFile(path).size()},
                       {"compression", array.gzip ? "gzip" : "none"},
                       {"type", "uint8"},
                       {"shape", array.shape}};
  if (array.shape.size() == 1) {
    std::map<std::string, uint64_t> counts;
    for (const uint8_t label : array.bytes) ++counts[fmt::format("{}", label)];
    line["labels"] = counts;
  }
  return text_of(line);
}

std::string describe(const std::string& path) {
  return is_idx_file(path) ? describe_idx(path) : describe_records(path);
}

}  // namespace

int inspect(const Arguments& argv) {
  const auto files =
      parse_data_files(argv,
                       "Prints one JSON line per TFRecord file of tf.Examples: file, records, bytes, compression, and "
                       "for each key its type, the number of records with the key (count) and of its values. Verifies "
                       "every checksum. The line of an IDX file, such as MNIST's, has its shape and the frequency of "
                       "each label. A faulty file has a line on stderr instead.",
                       true);
  if (!files) return 0;

  std::vector<std::string> lines(files->paths.size());
  const auto errors = files->for_each([&](size_t i) { lines[i] = describe(files->paths[i]); });
  for (size_t i = 0; i < lines.size(); ++i)
    if (!errors[i]) fmt::print("{}\n", lines[i]);
  return report(errors);
}

}  // namespace dtrain::dataset
