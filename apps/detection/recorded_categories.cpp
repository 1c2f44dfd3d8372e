#include "apps/detection/recorded_categories.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/cli/recorded_weights.h"
#include "apps/cli/stop_signals.h"
#include "libdtrain/io/json_limits.h"

namespace dtrain::detection {
namespace {

constexpr size_t kMostBytes = size_t{16} << 20, kMostValues = 1'000'000;

}  // namespace

std::string categories_text(const std::vector<data::coco::Category>& categories) {
  auto list = nlohmann::ordered_json::array();
  for (const data::coco::Category& one : categories) {
    list.push_back({{"id", one.id}, {"name", one.name}});
    if (!one.id_text.empty()) list.back()["id_text"] = one.id_text;
  }
  return list.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::vector<data::coco::Category> recorded_categories(const std::string& file) {
  const WeightsRecord record = cli::recorded_with(file);
  const auto found = record.find(kCategoriesKey);
  if (found == record.end()) return {};
  const std::string where = fmt::format("{}: {}", file, kCategoriesKey);
  const JsonLimits limits{.bytes = kMostBytes, .depth = 3, .values = kMostValues};
  const auto list = parse_json<nlohmann::json>(found->second, where, Fault::checkpoint, limits);
  std::vector<data::coco::Category> categories;
  try {
    for (const auto& one : list)
      categories.push_back({one.at("id").get<int64_t>(), one.at("name").get<std::string>(), one.value("id_text", "")});
  } catch (const nlohmann::json::exception& error) {
    throw Error(Fault::checkpoint, fmt::format("{}: expected a list of ids and names: {}", where, error.what()));
  }
  return categories;
}

std::vector<data::coco::Category> categories_in(const std::string& path, const std::vector<std::string>& classes) {
  data::coco::AnnotationOptions options{.classes = classes};
  options.use = data::coco::AnnotationOptions::Use::scoring;
  options.masks = false;
  options.stop = cli::stop_requested;
  return data::coco::read_annotations(path, options).categories;
}

}  // namespace dtrain::detection
