#include <fmt/format.h>

#include "apps/cli/messages.h"
#include "apps/dataset/detection_stats.h"

namespace dtrain::dataset {
namespace {

using nlohmann::ordered_json;

std::string split_text(const SplitStats& split) {
  std::string text = fmt::format(
      "{}: {} images, {} objects, {}\n"
      "  images without objects: {}; that cannot be used: {}\n"
      "  crowds: {}; objects with masks: {}\n"
      "  width: {}"
      "  areas: {} small (below 32x32), {} medium (below 96x96), {} large\n",
      split.name, split.images, split.objects, cli::escaped(split.annotations), split.empty_images,
      split.unusable_images, split.crowds, split.masks, sides_text(split.width, split.height), split.areas[0],
      split.areas[1], split.areas[2]);
  text += fmt::format("  {:>6} {:>9} {:>9}  class\n", "id", "objects", "images");
  for (const ClassCount& one : split.classes)
    text += fmt::format("  {:>6} {:>9} {:>9}  {}\n", one.id, one.objects, one.images, cli::escaped(one.name));
  return text;
}

ordered_json split_json(const SplitStats& split) {
  ordered_json classes = ordered_json::array();
  for (const ClassCount& one : split.classes)
    classes.push_back({{"id", one.id}, {"name", one.name}, {"objects", one.objects}, {"images", one.images}});
  return {{"name", split.name},
          {"annotations", split.annotations},
          {"images", split.images},
          {"unusable_images", split.unusable_images},
          {"empty_images", split.empty_images},
          {"objects", split.objects},
          {"crowds", split.crowds},
          {"masks", split.masks},
          {"width", sides_json(split.width)},
          {"height", sides_json(split.height)},
          {"areas", {{"small", split.areas[0]}, {"medium", split.areas[1]}, {"large", split.areas[2]}}},
          {"classes", std::move(classes)}};
}

}  // namespace

std::string sides_text(const SideLengths& width, const SideLengths& height) {
  return fmt::format("{} to {}, median {}; height: {} to {}, median {}\n", width.least, width.most, width.median,
                     height.least, height.most, height.median);
}

ordered_json sides_json(const SideLengths& lengths) {
  return {{"min", lengths.least}, {"median", lengths.median}, {"max", lengths.most}};
}

std::string as_text(const DetectionStats& stats, size_t examples) {
  std::string text;
  for (const SplitStats& split : stats.splits) text += split_text(split);
  text += duplicates_text(stats.duplicates, examples, false);
  if (stats.unreadable > 0) text += fmt::format("image files that cannot be read: {}\n", stats.unreadable);
  return text;
}

std::string as_json(const DetectionStats& stats) {
  ordered_json splits = ordered_json::array();
  for (const SplitStats& split : stats.splits) splits.push_back(split_json(split));
  const ordered_json all = {{"splits", std::move(splits)},
                            {"duplicates", duplicates_json(stats.duplicates, false)},
                            {"unreadable_images", stats.unreadable}};
  return all.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace dtrain::dataset
