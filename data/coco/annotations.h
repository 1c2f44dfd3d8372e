// Ground truth of object detection: COCO's "instances" JSON files.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "data/coco/findings.h"
#include "data/coco/rle.h"

namespace dtrain::data::coco {

// Numbers that stand for ids which are strings and spell no number begin here.
inline constexpr int64_t kFirstTextId = int64_t{1} << 61;

struct Image {
  int64_t id = 0;
  // Relative to the folder of images. It never leads out of it, but for "../SPLIT/NAME" where
  // AnnotationOptions::complete has found it so. Empty where ground truth to score against states none that does so.
  std::string file_name{};
  int64_t width = 0, height = 0;  // 0 where ground truth to score against states none
  std::string id_text{};          // the id, where the file has a string; `id` is then a number that stands for it
};

struct Category {
  int64_t id = 0;
  std::string name{};  // empty where ground truth to score against states none
  std::string id_text{};
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
  bool never_matches = false;  // ground truth of id 0, which is no match for pycocotools
};

// The kind of finding that images are of which Annotations::unusable lists.
inline constexpr std::string_view kUnusableImages = "images without a size or a file";

// An image that is left out, since it is not there, its header cannot be read, or its size is not known.
struct UnusableImage {
  std::string name{};  // as the file states it: a file name or an address
  std::string reason{};
};

// The class of a category in a model is its index + 1, because 0 is the background.
struct Annotations {
  // In ascending order of ids, also those without annotations; ids that are strings in the order of their text.
  std::vector<Image> images;
  std::vector<Category> categories;     // in ascending order of ids, or that of AnnotationOptions::classes
  std::vector<Annotation> annotations;  // image by image, and in the order of the file within an image
  std::vector<uint64_t> begins{0};      // the first annotation of each image, and the number of all at the end
  Findings findings{};                  // what was left out, or read otherwise than it stands in the file
  std::vector<UnusableImage> unusable{};

  // Those of images[image].
  std::span<const Annotation> of(size_t image) const {
    return {annotations.data() + begins[image], begins[image + 1] - begins[image]};
  }
};

struct AnnotationOptions {
  // What is unusable is left out of training data, as detectron2 and TensorPack do: parts of masks, then objects.
  // Ground truth is read as pycocotools reads it: boxes of any size; an id that several annotations have is that of the
  // last of them, as often; sizes, names and polygons may be missing.
  enum class Use { training, scoring };

  // Names of the categories to keep, in the order of classes; annotations of others are left out. All where empty.
  std::vector<std::string> classes{};
  Use use = Use::training;
  bool masks = true;          // else those of objects with a box are not looked at
  bool strict = false;        // faults are errors
  bool skip_ignored = false;  // leaves objects with "ignore": 1 out, as TensorPack does in training
  // Called for an image whose size is missing or whose name is absolute, has backslashes or comes from its coco_url.
  // `stated` is the name as it stands in the file; image.file_name has slashes and is relative, image.width is 0 where
  // there is no size. Finds both or throws Error(Fault::data), which leaves the image out. Without it the last part of
  // such names is taken, and images of training data without a size are left out.
  std::function<void(Image& image, const std::string& stated)> complete{};
  // Called for each MiB of a file: true ends the reading with Error(Fault::resource).
  bool (*stop)() = nullptr;
};

// Reads the file in pieces: memory is needed for what is kept, not for the text. A missing area is that of the mask or
// else of the box, a missing box is that around the mask, a missing `iscrowd` (or `is_crowd`) is 0. What is left out is
// counted in `findings`. Throws Error(Fault::data), "FILE: image 123: ...", for what is no such file: images and
// categories without an id, or different ones of one id; names of files that lead out of their folder; JSON that is
// invalid, in UTF-16 or compressed; with `strict` for every fault, all kinds of them in one line. A class that no
// category has is an error, which names the nearest one.
Annotations read_annotations(const std::string& path, const AnnotationOptions& options = {});
// The same for text in memory, which errors call `where`.
Annotations parse_annotations(std::string_view text, const std::string& where, const AnnotationOptions& options = {});

// The mask of an object in an image of this size: the union of its polygons, or its RLE. Throws Error(Fault::data)
// where it has no segmentation.
Rle mask_of(const Annotation& annotation, int64_t height, int64_t width);

}  // namespace dtrain::data::coco
