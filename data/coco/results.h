// What a detector has found: COCO's result files.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/coco/annotations.h"

namespace dtrain::data::coco {

// Has a box or a mask or both.
struct Detection {
  int64_t image_id = 0, category_id = 0;  // of the annotations' file
  double score = 0;
  std::optional<Box> box{};
  std::optional<Rle> mask{};
  Polygons polygons{};  // that are its mask at the size of the image, where it has no RLE
};

struct ResultOptions {
  bool masks = true;             // else those of detections with a box are not looked at
  Findings* findings = nullptr;  // get what is read otherwise than it stands there
};

// A list of objects with image_id, category_id, score, and bbox ([x, y, width, height]) or segmentation (RLE or
// polygons), in its order. Ids may be strings, as in AnnotationOptions. Boxes may have any numbers, as pycocotools
// takes them, also NaN. Throws Error(Fault::data), "FILE: detection at index 7: ...", for anything else.
std::vector<Detection> read_results(const std::string& path, const ResultOptions& options = {});
// The same for text in memory, which errors call `where`.
std::vector<Detection> parse_results(std::string_view text, const std::string& where,
                                     const ResultOptions& options = {});

// Writes such a list piece by piece, each number in the fewest digits that are read as the same double.
class ResultWriter {
 public:
  using Write = std::function<void(std::string_view)>;

  explicit ResultWriter(Write write) : write_(std::move(write)) {}
  // Throws Error(Fault::numeric) where a number is not finite, and has written nothing of the detection then.
  void add(const Detection& detection);
  // Closes the list, to which nothing may be added any more.
  void finish();

 private:
  Write write_;
  bool empty_ = true, finished_ = false;
};

}  // namespace dtrain::data::coco
