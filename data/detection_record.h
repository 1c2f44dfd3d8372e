// Records of object detection in TensorFlow's schema, that of create_coco_tf_record.py. An image with the lists of its
// objects, which have equal lengths:
//   image/encoded, image/height, image/width, image/source_id, image/filename
//   image/object/bbox/{xmin,xmax,ymin,ymax}  fractions of the image
//   image/object/class/label, image/object/class/text (optional)
//   image/object/is_crowd, image/object/area, image/object/mask: a PNG of the image's size each (all optional)
// and one list of our own, that masks are read of where it is there, as it holds what a PNG does not, polygons:
//   image/object/segmentation  "" none; "R", then COCO's compressed text; "P", then for each polygon the number of its
//                              coordinates (32 bits) and x0, y0, x1, y1 ... in pixels (64-bit floats; little-endian)
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/coco/annotations.h"
#include "data/detection_geometry.h"
#include "data/example.h"
#include "data/image.h"

namespace dtrain::data {

// All views point into the record.
struct DetectionRecord {
  struct Object {
    coco::Box box{};  // in pixels; it may reach out of the image
    int64_t label = 0;
    std::string_view text{};
    bool is_crowd = false;
    double area = 0;                          // of the box, where the record has none
    std::string_view mask{}, segmentation{};  // as stored; empty where there is none
  };
  std::span<const std::byte> encoded{};
  std::string_view source_id{}, filename{};  // may be empty
  int64_t height = 0, width = 0;
  std::vector<Object> objects{};

  // source_id as a number, where it is one.
  std::optional<int64_t> id() const;
};

// One thread's reader: it keeps its buffers from record to record.
class DetectionRecordReader {
 public:
  // What it returns lives until the next call and as long as `record`. Masks are not looked into. Throws
  // Error(Fault::data) where a feature is missing, of another type or length than the others, a number is not finite or
  // out of range, or the image's header tells another size.
  const DetectionRecord& read(std::span<const std::byte> record);

 private:
  template <class Value>
  bool list(const char* key, std::vector<Value>& values);
  void read_objects();
  void read_optional_lists();

  Example example_;
  ImageDecoder decoder_;
  DetectionRecord record_;
  std::vector<float> left_, right_, top_, bottom_, areas_;
  std::vector<int64_t> labels_, crowd_;
  std::vector<std::string_view> views_;
};

// The segmentation of an object in an image of this size. Throws Error(Fault::data) where it is none or of another
// size.
coco::Segmentation segmentation_of(const DetectionRecord::Object& object, int64_t height, int64_t width);

// An image to be stored.
struct DetectionImage {
  std::span<const std::byte> encoded{};
  std::string_view format{};  // "jpeg" or "png"
  std::string_view filename{};
  int64_t id = 0;
  std::string_view id_text{};  // in place of the number, where it is not empty
  ImageSize size{};
  std::span<const coco::Annotation> objects{};
  std::span<const coco::Category> categories{};  // whose ids become the labels
};
// The bytes of its tf.Example. Boxes are clipped to the image, for some readers refuse others. With `masks` each object
// has both forms of its own.
std::string detection_example(const DetectionImage& image, bool masks = true);

}  // namespace dtrain::data
