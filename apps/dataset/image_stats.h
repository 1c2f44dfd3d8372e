// Statistics of labelled images.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "apps/dataset/detection_stats.h"
#include "apps/dataset/duplicates.h"

namespace dtrain::dataset {

struct LabelCount {
  int64_t label = 0;
  std::string name{};  // empty: without a name
  uint64_t images = 0;
};

struct ImageSplitStats {
  std::string name{};  // "train" or "validation"
  uint64_t images = 0, unreadable = 0;
  SideLengths width{}, height{};
  // Of the levels of red, green and blue, scaled to [0, 1], of upright images that count equally whatever their size.
  // NaN if they were not measured.
  std::array<double, 3> mean{}, deviation{};
  std::vector<LabelCount> classes{};  // classes that have a name or images
};

struct ImageStats {
  std::vector<ImageSplitStats> splits{};
  std::vector<DuplicateImages> duplicates{};
  std::vector<std::string> faults{};  // images that cannot be read, with the reason
};

// Reads all images of `data`, which has labelled images; with `pixels` it decodes them, too.
ImageStats image_stats(const std::string& data, bool pixels, int64_t threads);

// `examples`: maximum number of duplicates, and of unreadable images, that are named.
std::string as_text(const ImageStats& stats, size_t examples);
// {"splits": [{"name", "images", "unreadable_images", "width": {"min", "median", "max"}, "height", "mean": [R, G, B],
// "std": [R, G, B], "classes": [{"label", "name", "images"}]}], "duplicates": [{"files", "in_several_splits",
// "in_several_classes"}], "unreadable_images": [TEXT]}. Without pixels, mean and std are null.
std::string as_json(const ImageStats& stats);

}  // namespace dtrain::dataset
