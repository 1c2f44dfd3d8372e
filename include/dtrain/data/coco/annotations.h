// Ground truth of object detection: COCO "instances" JSON files.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "dtrain/data/coco/findings.h"
#include "dtrain/data/coco/rle.h"

namespace dtrain::data::coco {

// Base of the numeric ids that replace non-numeric string ids.
inline constexpr int64_t kFirstTextId = int64_t{1} << 61;

struct AnnotatedImage {
  int64_t id = 0;
  // Relative to the folder of images, inside it unless AnnotationOptions::complete has resolved it to "../SPLIT/NAME".
  // For scoring it is empty if the file has no such name.
  std::string file_name{};
  int64_t width = 0, height = 0;  // 0 if missing, for scoring only
  std::string id_text{};          // the id if it is a string in the file; `id` is then derived from it
};

struct Category {
  int64_t id = 0;
  std::string name{};  // empty if missing, for scoring only
  std::string id_text{};
};

// An object has polygons of its parts, an RLE mask of the image's size, or neither.
using Polygons = std::vector<std::vector<double>>;
using Segmentation = std::variant<std::monostate, Polygons, Rle>;

struct Annotation {
  int64_t id = 0;
  uint32_t image = 0, category = 0;  // indices into Annotations::images and ::categories
  bool is_crowd = false;
  double area = 0;    // as stated in the file, in pixels; may differ from the area of box and mask
  BoundingBox box{};  // may exceed the image or be empty
  Segmentation segmentation{};
  bool never_matches = false;  // ground truth with id 0, which pycocotools never matches
};

// Finding for the images in Annotations::unusable.
inline constexpr std::string_view kUnusableImages = "images without a size or a file";

// Image that is skipped because it is missing, its header is unreadable, or its size is unknown.
struct UnusableImage {
  std::string name{};  // as stated in the file: a file name or a URL
  std::string reason{};
};

// A model's class of a category is its index + 1; class 0 is background.
struct Annotations {
  // By ascending id, including images without annotations; string ids in lexicographic order.
  std::vector<AnnotatedImage> images;
  std::vector<Category> categories;     // by ascending id, or in the order of AnnotationOptions::classes
  std::vector<Annotation> annotations;  // grouped by image, in file order within an image
  std::vector<uint64_t> begins{0};      // first annotation of each image, and the total at the end
  Findings findings{};                  // skipped or reinterpreted parts of the file
  std::vector<UnusableImage> unusable{};

  // Annotations of images[image].
  std::span<const Annotation> of(size_t image) const {
    return {annotations.data() + begins[image], begins[image + 1] - begins[image]};
  }
};

struct AnnotationOptions {
  // `training`: invalid mask parts and objects are skipped, as in detectron2 and TensorPack. `scoring`: as pycocotools
  // reads ground truth: any box size; of annotations with one id the last one replaces the others, each time; sizes,
  // names and polygons may be missing.
  enum class Use { training, scoring };

  // Names of the categories to keep, in class order; other annotations are skipped. Empty: all.
  std::vector<std::string> classes{};
  Use use = Use::training;
  bool masks = true;          // false: masks of objects with a box are not parsed
  bool strict = false;        // faults are errors
  bool skip_ignored = false;  // skip objects with "ignore": 1, as TensorPack does in training
  // Called for an image without a size, or whose name is absolute, has backslashes or comes from its coco_url. `stated`
  // is the original name; image.file_name has slashes and is relative; image.width is 0 if unknown. Sets name and size,
  // or throws Error(Fault::data) to skip the image. If empty, the last component of such names is used, and training
  // images without a size are skipped.
  std::function<void(AnnotatedImage& image, const std::string& stated)> complete{};
  // Polled once per MiB of a file: true aborts reading with Error(Fault::resource).
  bool (*stop)() = nullptr;
};

// Streaming parser: memory grows with the result, not with the text. Defaults: a missing area is the area of the mask
// or else of the box, a missing box the bounding box of the mask, a missing `iscrowd` (or `is_crowd`) 0. Skipped parts
// are counted in `findings`. Throws Error(Fault::data), "FILE: image 123: ...", for images and categories without an id
// or with a duplicate id, file names that escape the folder, invalid JSON, UTF-16 or compressed text, and with `strict`
// for every fault, all kinds in one line. Throws Error for an unknown class, with the nearest known name.
Annotations read_annotations(const std::string& path, const AnnotationOptions& options = {});
// The same for text in memory; `where` replaces FILE in errors.
Annotations parse_annotations(std::string_view text, const std::string& where, const AnnotationOptions& options = {});

// Mask of an object in an image of this size: the union of its polygons, or its RLE. Throws Error(Fault::data) without
// segmentation.
Rle mask_of(const Annotation& annotation, int64_t height, int64_t width);

// Deprecated name, removed with the next minor version: docs/migration.md.
using Image [[deprecated("renamed: AnnotatedImage")]] = AnnotatedImage;

}  // namespace dtrain::data::coco
