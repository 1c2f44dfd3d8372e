#include "apps/cli/input_notices.h"

#include <fmt/format.h>

#include "apps/cli/messages.h"

namespace dtrain::cli {

std::vector<std::string> input_notices(const data::LoaderStats& stats) {
  if (stats.bad_records == 0 && stats.damaged_images == 0) return {};
  std::vector<std::string> lines{
      fmt::format("{} bad records skipped, {} damaged images used", stats.bad_records, stats.damaged_images)};
  lines.insert(lines.end(), stats.faults.begin(), stats.faults.end());
  for (const std::string& damage : stats.damages) lines.push_back("damaged: " + damage);
  return lines;
}

std::string orientation_notice(uint64_t tagged, uint64_t images, data::Orientation orientation) {
  if (tagged == 0) return "";
  return fmt::format("{} of the {} images read have an EXIF orientation other than 1: {}", tagged, images,
                     orientation == data::Orientation::apply
                         ? "they were turned; --exif_orientation=ignore takes them as they are stored"
                         : "they were taken as they are stored; --exif_orientation=apply turns them");
}

void DamageCount::add(const std::string& file, const std::string& warning) {
  if (warning.empty()) return;
  ++count_;
  print_message("note", fmt::format("{}: damaged image: {}", file, warning));
}

void DamageCount::report(size_t images) const {
  if (count_ > 0) print_message("note", fmt::format("{} of {} images are damaged", count_, images));
}

}  // namespace dtrain::cli
