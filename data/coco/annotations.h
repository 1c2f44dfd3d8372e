// Ground truth of object detection: COCO's "instances" JSON files.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "data/coco/rle.h"

namespace dtrain::data::coco {

struct Image {
  int64_t id = 0;
  std::string file_name{};  // relative to the folder of images, and never leads out of it
  int64_t width = 0, height = 0;
};

struct Category {
  int64_t id = 0;
  std::string name{};
};

// An object has the polygons of its parts, a mask of the image's size, or neither.
using Polygons = std::vector<std::vector<double>>;
using Segmentation = std::variant<std::monostate, Polygons, Rle>;

struct Annotation {
  int64_t id = 0;
  uint32_t image = 0, category = 0;  // indices into Annotations::images and ::categories
  bool is_crowd = false;
  double area = 0;  // as the file states it, which need not be that of the box or the mask; in pixels
  Box box{};        // may lie outside the image or be empty
  Segmentation segmentation{};
};

// The class of a category in a model is its index + 1, because 0 is the background.
struct Annotations {
  std::vector<Image> images;            // in ascending order of ids, also those without annotations
  std::vector<Category> categories;     // in ascending order of ids, or that of AnnotationOptions::classes
  std::vector<Annotation> annotations;  // image by image, and in the order of the file within an image
  std::vector<uint64_t> begins{0};      // the first annotation of each image, and the number of all at the end

  // Those of images[image].
  std::span<const Annotation> of(size_t image) const {
    return {annotations.data() + begins[image], begins[image + 1] - begins[image]};
  }
};

struct AnnotationOptions {
  // Names of the categories to keep, in the order of classes; annotations of others are left out. All where empty.
  std::vector<std::string> classes{};
};

// Reads the file in pieces: memory is needed for what is kept, not for the text. A missing area is that of the mask or
// else of the box, a missing box is that around the mask, a missing `iscrowd` (or `is_crowd`) is 0. Throws
// Error(Fault::data), "FILE: annotation 123: ...", for what is no such file: ids that occur twice, are unknown or no
// whole numbers; numbers that are not finite; masks of another size than their image; names of files that lead out of
// their folder; JSON that is invalid. A class that no category has is an error, which names the nearest one.
Annotations read_annotations(const std::string& path, const AnnotationOptions& options = {});
// The same for text in memory, which errors call `where`.
Annotations parse_annotations(std::string_view text, const std::string& where, const AnnotationOptions& options = {});

// The mask of an object in an image of this size: the union of its polygons, or its RLE. Throws Error(Fault::data)
// where it has no segmentation.
Rle mask_of(const Annotation& annotation, int64_t height, int64_t width);

}  // namespace dtrain::data::coco
