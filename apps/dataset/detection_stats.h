// Statistics of detection data sets.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "apps/dataset/annotated_source.h"
#include "apps/dataset/duplicates.h"

namespace dtrain::dataset {

struct ClassCount {
  int64_t id = 0;
  std::string name{};
  uint64_t objects = 0, images = 0;  // images with such an object
};

struct SideLengths {
  int64_t least = 0, median = 0, most = 0;
};

// Zeros for no sides.
SideLengths side_lengths(std::vector<int64_t> sides);
// "20 to 50, median 40; height: 20 to 40, median 31\n"
std::string sides_text(const SideLengths& width, const SideLengths& height);
// {"min", "median", "max"}
nlohmann::ordered_json sides_json(const SideLengths& lengths);

struct SplitStats {
  std::string name{}, annotations{};
  uint64_t images = 0, unusable_images = 0, empty_images = 0;
  uint64_t objects = 0, crowds = 0, masks = 0;
  SideLengths width{}, height{};
  // Objects by COCO's ranges of the area: below 32 x 32 pixels, below 96 x 96, and the others.
  std::array<uint64_t, 3> areas{};
  std::vector<ClassCount> classes{};
};

struct DetectionStats {
  std::vector<SplitStats> splits{};
  std::vector<DuplicateImages> duplicates{};
  uint64_t unreadable = 0;  // image files that could not be compared
};

DetectionStats stats_of(const std::vector<AnnotatedSource>& splits, int64_t threads);

// `examples`: maximum number of duplicates that are named.
std::string as_text(const DetectionStats& stats, size_t examples);
// {"splits": [{"name", "annotations", "images", "unusable_images", "empty_images", "objects", "crowds", "masks",
// "width": {"min", "median", "max"}, "height", "areas": {"small", "medium", "large"}, "classes": [{"id", "name",
// "objects", "images"}]}], "duplicates": [{"files", "in_several_splits"}], "unreadable_images"}
std::string as_json(const DetectionStats& stats);

}  // namespace dtrain::dataset
