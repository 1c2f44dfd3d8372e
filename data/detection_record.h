// Object detection records in TensorFlow's schema (create_coco_tf_record.py). An image with lists of equal length, one
// entry per object:
//   image/encoded, image/height, image/width, image/source_id, image/filename
//   image/object/bbox/{xmin,xmax,ymin,ymax}  fractions of the image
//   image/object/class/label, image/object/class/text (optional)
//   image/object/is_crowd, image/object/area, image/object/mask: PNG of the image's size (all optional)
// and an extension with exact segmentations, preferred over PNG masks because it keeps polygons:
//   image/object/segmentation  "" none; "R", then COCO's compressed RLE text; "P", then for each polygon the number of
//   coordinates (32 bits) and x0, y0, x1, y1 ... in pixels (64-bit floats; little-endian)
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dtrain/data/coco/annotations.h"
#include "dtrain/data/detection_geometry.h"
#include "dtrain/data/example.h"
#include "dtrain/data/image.h"

namespace dtrain::data {

// All views point into the record.
struct DetectionRecord {
  struct Object {
    coco::BoundingBox box{};  // in pixels; may exceed the image
    int64_t label = 0;
    std::string_view text{};
    bool is_crowd = false;
    double area = 0;                          // default: area of the box
    std::string_view mask{}, segmentation{};  // as stored; empty if absent
  };
  std::span<const std::byte> encoded{};
  std::string_view source_id{}, filename{};  // may be empty
  int64_t height = 0, width = 0;
  std::vector<Object> objects{};

  // source_id as a number, if it is one.
  std::optional<int64_t> id() const;
};

// Per-thread reader with reusable buffers.
class DetectionRecordReader {
 public:
  // The result is valid until the next call and as long as `record`. Masks are not decoded. Throws Error(Fault::data)
  // for a feature that is missing or has another type or length, a number that is not finite or out of range, and a
  // header with another image size.
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

// Segmentation of an object in an image of this size. Throws Error(Fault::data) for an invalid one or one of another
// size.
coco::Segmentation segmentation_of(const DetectionRecord::Object& object, int64_t height, int64_t width);

// Image to serialise.
struct DetectionImage {
  std::span<const std::byte> encoded{};
  std::string_view format{};  // "jpeg" or "png"
  std::string_view filename{};
  int64_t id = 0;
  std::string_view id_text{};  // overrides the numeric id unless empty
  ImageSize size{};
  std::span<const coco::Annotation> objects{};
  std::span<const coco::Category> categories{};  // their ids become the labels
};
// Serialised tf.Example. Boxes are clipped to the image, since some readers reject others. With `masks` objects have
// both mask forms.
std::string detection_example(const DetectionImage& image, bool masks = true);

}  // namespace dtrain::data
