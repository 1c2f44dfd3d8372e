// dtrain-data stats: statistics of a data set.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "apps/cli/command_line.h"
#include "apps/cli/messages.h"
#include "apps/dataset/detection_stats.h"
#include "apps/dataset/writing.h"
#include "dtrain/core/error.h"

namespace dtrain::dataset {
namespace {

using nlohmann::ordered_json;

std::string split_text(const SplitStats& split) {
  std::string text = fmt::format(
      "{}: {} images, {} objects, {}\n"
      "  images without objects: {}; that cannot be used: {}\n"
      "  crowds: {}; objects with masks: {}\n"
      "  width: {} to {}, median {}; height: {} to {}, median {}\n"
      "  areas: {} small (below 32x32), {} medium (below 96x96), {} large\n",
      split.name, split.images, split.objects, cli::escaped(split.annotations), split.empty_images,
      split.unusable_images, split.crowds, split.masks, split.width.least, split.width.most, split.width.median,
      split.height.least, split.height.most, split.height.median, split.areas[0], split.areas[1], split.areas[2]);
  text += fmt::format("  {:>6} {:>9} {:>9}  class\n", "id", "objects", "images");
  for (const ClassCount& one : split.classes)
    text += fmt::format("  {:>6} {:>9} {:>9}  {}\n", one.id, one.objects, one.images, cli::escaped(one.name));
  return text;
}

ordered_json sides(const SideLengths& lengths) {
  return {{"min", lengths.least}, {"median", lengths.median}, {"max", lengths.most}};
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
          {"width", sides(split.width)},
          {"height", sides(split.height)},
          {"areas", {{"small", split.areas[0]}, {"medium", split.areas[1]}, {"large", split.areas[2]}}},
          {"classes", std::move(classes)}};
}

}  // namespace

std::string as_text(const DetectionStats& stats, size_t examples) {
  std::string text;
  for (const SplitStats& split : stats.splits) text += split_text(split);
  uint64_t images = 0, shared = 0;
  for (const DuplicateImages& group : stats.duplicates) {
    images += group.files.size() - 1;
    shared += group.in_several_splits ? 1 : 0;
  }
  text +=
      fmt::format("images with the bytes of another one: {}; groups of them in several splits: {}\n", images, shared);
  for (size_t i = 0; i < std::min(examples, stats.duplicates.size()); ++i)
    text += fmt::format("  {}\n", cli::escaped(fmt::format("{}", fmt::join(stats.duplicates[i].files, " = "))));
  if (stats.duplicates.size() > examples) text += fmt::format("  and {} more\n", stats.duplicates.size() - examples);
  if (stats.unreadable > 0) text += fmt::format("image files that cannot be read: {}\n", stats.unreadable);
  return text;
}

std::string as_json(const DetectionStats& stats) {
  ordered_json splits = ordered_json::array(), duplicates = ordered_json::array();
  for (const SplitStats& split : stats.splits) splits.push_back(split_json(split));
  for (const DuplicateImages& group : stats.duplicates)
    duplicates.push_back({{"files", group.files}, {"in_several_splits", group.in_several_splits}});
  const ordered_json all = {
      {"splits", std::move(splits)}, {"duplicates", std::move(duplicates)}, {"unreadable_images", stats.unreadable}};
  return all.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

int stats(const Arguments& argv) {
  AnnotationFlags annotations;
  int64_t threads = 0, examples = 20;
  bool json = false;
  cli::FlagSet flags(argv.front(), "DIR [flags]",
                     "Prints statistics of a detection data set: images, their sizes, objects and images per class, "
                     "objects by COCO's ranges of the area, images without objects, and image files with equal bytes, "
                     "which are worst in several splits.");
  annotations.declare(flags);
  flags.add("threads", threads, "worker threads; 0: one per core", cli::kThreads);
  flags.add("examples", examples, "maximum number of groups of equal images that are named", {0, 1'000'000});
  flags.add("json", json, "print one JSON object instead, with all groups of equal images");
  const auto places = cli::read_command_line(flags, argv);
  if (!places) return 0;
  DT_CHECK(places->size() == 1, "expected one folder; see --help");
  until_stopped([&] {
    const DetectionStats found = stats_of(annotations.open(places->front(), threads), threads);
    fmt::print("{}", json ? as_json(found) : as_text(found, static_cast<size_t>(examples)));
  });
  return 0;
}

}  // namespace dtrain::dataset
