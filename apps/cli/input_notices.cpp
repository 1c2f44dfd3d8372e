#include "apps/cli/input_notices.h"

#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/cli/messages.h"
#include "libdtrain/distributed/read_texts.h"
#include "libdtrain/io/json_limits.h"

namespace dtrain::cli {
namespace {

std::string text_of(const data::LoaderStats& stats) {
  const nlohmann::json json = {
      {"records", stats.records},         {"damaged", stats.damaged_images}, {"oriented", stats.oriented_images},
      {"turned", stats.turned_images},    {"deferred", stats.deferred},      {"bad", stats.bad_records},
      {"unreachable", stats.unreachable}, {"faults", stats.faults},          {"damages", stats.damages}};
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

data::LoaderStats stats_from(const std::string& text) {
  const auto json = parse_json<nlohmann::json>(text, "counts of the input", Fault::communication);
  constexpr uint64_t kMost = uint64_t{1} << 50;  // the all-reduced count cannot overflow
  const auto count = [&](const char* key) {
    return static_cast<int64_t>(count_at(json, key, kMost, "counts of the input", Fault::communication));
  };
  const auto texts = [&](const char* key) {
    constexpr size_t kMostOfText = 64 << 10;
    auto found = json.at(key).get<std::vector<std::string>>();
    for (const std::string& one : found) DT_CHECK(one.size() <= kMostOfText, key, ": a text of ", one.size(), " bytes");
    return found;
  };
  data::LoaderStats stats;
  stats.records = count("records");
  stats.damaged_images = count("damaged");
  stats.oriented_images = count("oriented");
  stats.turned_images = count("turned");
  stats.deferred = count("deferred");
  stats.bad_records = count("bad");
  stats.unreachable = count("unreachable");
  stats.faults = texts("faults");
  stats.damages = texts("damages");
  return stats;
}

}  // namespace

data::LoaderStats over_ranks(Group& group, const data::LoaderStats& mine) {
  if (group.size() == 1) return mine;
  data::LoaderStats all;
  bool is_first = true;
  read_texts(group, text_of(mine), "counts of the input", [&](int, const std::string& text) {
    data::LoaderStats one = stats_from(text);
    if (!std::exchange(is_first, false)) one.bad_records -= std::exchange(one.unreachable, 0);
    all.add(one);
  });
  return all;
}

std::vector<std::string> input_notices(const data::LoaderStats& stats, data::Orientation orientation) {
  std::vector<std::string> lines;
  if (stats.bad_records > 0 || stats.damaged_images > 0)
    lines.push_back(
        fmt::format("{} bad records skipped, {} damaged images used", stats.bad_records, stats.damaged_images));
  lines.insert(lines.end(), stats.faults.begin(), stats.faults.end());
  for (const std::string& damage : stats.damages) lines.push_back("damaged: " + damage);
  if (std::string turned = orientation_notice(stats, orientation); !turned.empty()) lines.push_back(std::move(turned));
  return lines;
}

std::string orientation_notice(const data::LoaderStats& stats, data::Orientation orientation) {
  if (stats.oriented_images == 0) return "";
  std::string done = "used as stored; --exif_orientation=apply rotates them";
  if (orientation == data::Orientation::apply)
    done = stats.turned_images == stats.oriented_images
               ? "rotated; --exif_orientation=ignore uses them as stored"
               : fmt::format(
                     "{} were rotated, the others were used as stored, because their annotations state the stored size",
                     stats.turned_images);
  return fmt::format("{} of the {} images read have an EXIF orientation other than 1: {}", stats.oriented_images,
                     stats.records, done);
}

void report_input(const data::LoaderStats& stats, data::Orientation orientation, bool decodes_on_gpu, Log& log) {
  if (decodes_on_gpu && stats.records > 0)
    log.notice(fmt::format("--jpeg_decoder=gpu: {} of {} images were decoded by the host",
                           stats.records - stats.deferred, stats.records));
  for (const std::string& line : input_notices(stats, orientation)) log.notice(line);
}

void ImageCount::add(const std::string& file, const data::SampleNotes& notes) {
  ++counts_.records;
  counts_.oriented_images += notes.oriented;
  counts_.turned_images += notes.turned;
  if (notes.damage.empty()) return;
  ++counts_.damaged_images;
  print_message("note", fmt::format("{}: damaged image: {}", file, notes.damage));
}

void ImageCount::report(size_t images) const {
  if (counts_.damaged_images > 0)
    print_message("note", fmt::format("{} of {} images are damaged", counts_.damaged_images, images));
  const std::string turned = orientation_notice(counts_, orientation_);
  if (!turned.empty()) print_message("note", turned);
}

}  // namespace dtrain::cli
