// Detections, and COCO result files.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dtrain/data/coco/annotations.h"

namespace dtrain::data::coco {

// Has a box, a mask or both.
struct Detection {
  int64_t image_id = 0, category_id = 0;  // as in the annotations
  double score = 0;
  std::optional<BoundingBox> box{};
  std::optional<Rle> mask{};
  Polygons polygons{};  // mask as polygons, if there is no RLE
};

struct ResultOptions {
  bool masks = true;             // false: masks of detections with a box are not parsed
  Findings* findings = nullptr;  // receives reinterpreted values
};

// Reads a list of objects with image_id, category_id, score, and bbox ([x, y, width, height]) or segmentation (RLE or
// polygons), in file order. Ids may be strings, as in AnnotationOptions. Boxes may hold any numbers including NaN, as
// in pycocotools. Throws Error(Fault::data), "FILE: detection at index 7: ...", for invalid input.
std::vector<Detection> read_results(const std::string& path, const ResultOptions& options = {});
// The same for text in memory; `where` replaces FILE in errors.
std::vector<Detection> parse_results(std::string_view text, const std::string& where,
                                     const ResultOptions& options = {});

// Streaming writer of such a list. Numbers have the fewest digits that parse to the same double.
class ResultWriter {
 public:
  using Write = std::function<void(std::string_view)>;

  explicit ResultWriter(Write write) : write_(std::move(write)) {}
  // Throws Error(Fault::numeric) for a number that is not finite, without writing any of the detection.
  void add(const Detection& detection);
  // Closes the list; nothing may be added afterwards.
  void finish();

 private:
  Write write_;
  bool empty_ = true, finished_ = false;
};

}  // namespace dtrain::data::coco
