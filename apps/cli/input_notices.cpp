#include "apps/cli/input_notices.h"

#include <fmt/format.h>

#include "apps/cli/messages.h"

namespace dtrain::cli {

std::vector<std::string> input_notices(const data::LoaderStats& stats, uint64_t tagged, data::Orientation orientation) {
  std::vector<std::string> lines;
  if (stats.bad_records > 0 || stats.damaged_images > 0)
    lines.push_back(
        fmt::format("{} bad records skipped, {} damaged images used", stats.bad_records, stats.damaged_images));
  lines.insert(lines.end(), stats.faults.begin(), stats.faults.end());
  for (const std::string& damage : stats.damages) lines.push_back("damaged: " + damage);
  if (std::string turned = orientation_notice(tagged, stats.records, orientation); !turned.empty())
    lines.push_back(std::move(turned));
  return lines;
}

std::string orientation_notice(uint64_t tagged, uint64_t images, data::Orientation orientation) {
  if (tagged == 0) return "";
  return fmt::format("{} of the {} images read have an EXIF orientation other than 1: {}", tagged, images,
                     orientation == data::Orientation::apply
                         ? "they were turned; --exif_orientation=ignore takes them as they are stored"
                         : "they were taken as they are stored; --exif_orientation=apply turns them");
}

void report_input(const data::LoaderStats& stats, const data::Pixels& pixels, bool decodes_on_gpu, Log& log) {
  if (decodes_on_gpu)
    log.notice(fmt::format("--jpeg_decoder=gpu: {} of {} images were decoded by the host",
                           stats.records - stats.deferred, stats.records));
  for (const std::string& line : input_notices(stats, *pixels.tagged, pixels.orientation)) log.notice(line);
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
