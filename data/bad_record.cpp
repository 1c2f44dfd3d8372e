#include "dtrain/data/bad_record.h"

#include <nlohmann/json.hpp>

#include "dtrain/io/input_file.h"
#include "dtrain/io/remote_path.h"
#include "libdtrain/io/json_limits.h"

namespace dtrain::data {
namespace {

using SkippedJson = nlohmann::ordered_json;

constexpr JsonLimits kSkippedLimits{.bytes = size_t{1} << 30, .depth = 4, .values = 50'000'000, .seconds = 600};

}  // namespace

BadRecord BadRecordError::record_of(const std::string& file, std::string_view reason) {
  const std::string place = file + ": ";
  if (reason.starts_with(place)) reason.remove_prefix(place.size());
  return {file, std::string(reason)};
}

std::string to_json(const SkippedRecords& skipped) {
  SkippedJson list = SkippedJson::array();
  for (const auto& [shard, records] : skipped)
    for (const BadRecord& record : records) {
      list.push_back({{"file", record.file}, {"reason", record.reason}});
      if (!shard.empty()) list.back()["shard"] = shard;
    }
  SkippedJson all;
  all["skipped"] = std::move(list);
  return all.dump(1, ' ', false, SkippedJson::error_handler_t::replace) + "\n";
}

SkippedRecords read_skipped(const std::string& path) {
  SkippedRecords skipped;
  if (!file_exists(path)) return skipped;
  const std::string text = read_text(path, kSkippedLimits.bytes);
  const auto all = parse_json<nlohmann::json>(text, path, Fault::data, kSkippedLimits);
  try {
    for (const nlohmann::json& one : all.at("skipped"))
      skipped[one.value("shard", "")].push_back({one.at("file"), one.at("reason")});
  } catch (const nlohmann::json::exception& error) {
    throw Error(Fault::data, concat(path, ": not a list of skipped images: ", error.what()));
  }
  return skipped;
}

std::vector<BadRecord> all_of(const SkippedRecords& skipped) {
  std::vector<BadRecord> all;
  for (const auto& [shard, records] : skipped) all.insert(all.end(), records.begin(), records.end());
  return all;
}

}  // namespace dtrain::data
