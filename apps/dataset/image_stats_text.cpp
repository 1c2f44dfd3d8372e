#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "apps/cli/messages.h"
#include "apps/dataset/image_stats.h"

namespace dtrain::dataset {
namespace {

using nlohmann::ordered_json;

std::string channels(const std::array<double, 3>& values) {
  return fmt::format("{:.4f} {:.4f} {:.4f}", values[0], values[1], values[2]);
}

std::string image_split_text(const ImageSplitStats& split) {
  const auto empty = std::ranges::count(split.classes, uint64_t{0}, &LabelCount::images);
  std::string text = fmt::format(
      "{}: {} images in {} classes\n  classes without images: {}; images that cannot be read: {}\n{}{}", split.name,
      split.images, split.classes.size(), empty, split.unreadable, "  width: ", sides_text(split.width, split.height));
  if (!std::isnan(split.mean[0]))
    text += fmt::format("  mean of R, G, B in [0, 1]: {}; standard deviation: {}\n", channels(split.mean),
                        channels(split.deviation));
  text += fmt::format("  {:>6} {:>9}  class\n", "label", "images");
  for (const LabelCount& one : split.classes)
    text += fmt::format("  {:>6} {:>9}  {}\n", one.label, one.images, cli::escaped(one.name));
  return text;
}

ordered_json image_split_json(const ImageSplitStats& split) {
  ordered_json classes = ordered_json::array();
  for (const LabelCount& one : split.classes)
    classes.push_back({{"label", one.label}, {"name", one.name}, {"images", one.images}});
  const bool has_pixels = !std::isnan(split.mean[0]);
  return {{"name", split.name},
          {"images", split.images},
          {"unreadable_images", split.unreadable},
          {"width", sides_json(split.width)},
          {"height", sides_json(split.height)},
          {"mean", has_pixels ? ordered_json(split.mean) : ordered_json()},
          {"std", has_pixels ? ordered_json(split.deviation) : ordered_json()},
          {"classes", std::move(classes)}};
}

}  // namespace

std::string as_text(const ImageStats& stats, size_t examples) {
  std::string text;
  for (const ImageSplitStats& split : stats.splits) text += image_split_text(split);
  text += duplicates_text(stats.duplicates, examples, true);
  for (size_t i = 0; i < std::min(examples, stats.faults.size()); ++i)
    text += fmt::format("cannot be read: {}\n", cli::escaped(stats.faults[i]));
  if (stats.faults.size() > examples) text += fmt::format("and {} more\n", stats.faults.size() - examples);
  return text;
}

std::string as_json(const ImageStats& stats) {
  ordered_json splits = ordered_json::array();
  for (const ImageSplitStats& split : stats.splits) splits.push_back(image_split_json(split));
  const ordered_json all = {{"splits", std::move(splits)},
                            {"duplicates", duplicates_json(stats.duplicates, true)},
                            {"unreadable_images", stats.faults}};
  return all.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace dtrain::dataset
