#include "apps/dataset/detection_stats.h"

#include <algorithm>
#include <map>
#include <set>

#include "apps/cli/stop_signals.h"
#include "apps/dataset/files.h"
#include "dtrain/core/error.h"
#include "dtrain/io/input_file.h"
#include "dtrain/io/record_file.h"

namespace dtrain::dataset {
namespace {

constexpr double kSmallArea = 32 * 32, kMediumArea = 96 * 96;

SplitStats stats_of_split(const AnnotatedSource& split) {
  SplitStats stats{.name = split.name, .annotations = split.annotations};
  stats.unusable_images = split.unusable.size();
  for (const data::coco::Category& category : split.source->categories())
    stats.classes.push_back({category.id, category.name});
  std::vector<int64_t> widths, heights;
  const auto reader = split.source->reader();
  for (uint64_t i = 0; i < split.source->size(); ++i) {
    const data::DetectionSample sample = reader->read(i, {.bytes = false});
    ++stats.images;
    widths.push_back(sample.size.width);
    heights.push_back(sample.size.height);
    if (sample.objects.empty()) ++stats.empty_images;
    std::set<uint32_t> present;
    for (const data::coco::Annotation& object : sample.objects) {
      ++stats.objects;
      ++stats.classes[object.category].objects;
      if (present.insert(object.category).second) ++stats.classes[object.category].images;
      if (object.is_crowd) ++stats.crowds;
      if (object.segmentation.index() != 0) ++stats.masks;
      ++stats.areas[object.area < kSmallArea ? 0 : object.area < kMediumArea ? 1 : 2];
    }
  }
  stats.width = side_lengths(std::move(widths));
  stats.height = side_lengths(std::move(heights));
  return stats;
}

struct ImageFile {
  std::string path;
  size_t split = 0;
};

// Size and checksum; files in which both agree are compared byte by byte.
using Print = std::pair<uint64_t, uint32_t>;

std::vector<ImageFile> files_of(const std::vector<AnnotatedSource>& splits) {
  std::vector<ImageFile> files;
  std::set<std::pair<size_t, std::string>> seen;  // an image may be listed twice
  for (size_t k = 0; k < splits.size(); ++k)
    for (uint64_t i = 0; i < splits[k].source->size(); ++i)
      if (std::string path = splits[k].source->file_of(i); seen.emplace(k, path).second)
        files.push_back({std::move(path), k});
  return files;
}

// Groups of files with equal bytes among those of one size and checksum.
void add_duplicates(const std::vector<const ImageFile*>& alike, std::vector<DuplicateImages>& duplicates) {
  if (alike.size() < 2) return;
  std::map<std::string, std::vector<const ImageFile*>> by_bytes;
  for (const ImageFile* file : alike) by_bytes[read_text(file->path, kMaxRecordBytes)].push_back(file);
  for (const auto& [bytes, files] : by_bytes) {
    if (files.size() < 2) continue;
    DuplicateImages group;
    for (const ImageFile* file : files) {
      group.files.push_back(file->path);
      group.in_several_splits |= file->split != files.front()->split;
    }
    duplicates.push_back(std::move(group));
  }
}

void find_duplicates(const std::vector<AnnotatedSource>& splits, int64_t threads, DetectionStats& stats) {
  const std::vector<ImageFile> files = files_of(splits);
  std::vector<Print> prints(files.size());
  std::vector<char> readable(files.size());
  for_each_index(files.size(), threads, "image files", [&](size_t i) {
    if (cli::stop_requested()) throw Error("stopped");
    try {
      const InputFile file(files[i].path);
      prints[i] = {file.size(), crc32c_of(file)};
      readable[i] = 1;
    } catch (const Error& error) {
      if (error.fault() != Fault::data) throw;
    }
  });
  std::map<Print, std::vector<const ImageFile*>> by_print;
  for (size_t i = 0; i < files.size(); ++i)
    if (readable[i])
      by_print[prints[i]].push_back(&files[i]);
    else
      ++stats.unreadable;
  for (const auto& [print, alike] : by_print) add_duplicates(alike, stats.duplicates);
  sort_duplicates(stats.duplicates);
}

}  // namespace

SideLengths side_lengths(std::vector<int64_t> sides) {
  if (sides.empty()) return {};
  std::ranges::sort(sides);
  return {sides.front(), sides[sides.size() / 2], sides.back()};
}

DetectionStats stats_of(const std::vector<AnnotatedSource>& splits, int64_t threads) {
  DetectionStats stats;
  for (const AnnotatedSource& split : splits) stats.splits.push_back(stats_of_split(split));
  find_duplicates(splits, threads, stats);
  return stats;
}

}  // namespace dtrain::dataset
