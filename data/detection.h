// DetectionDataset: images on canvases of a few fixed sizes, with the boxes, classes and masks of their objects.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/augment.h"
#include "data/color_jitter.h"
#include "data/detection_geometry.h"
#include "data/detection_source.h"

namespace dtrain::data {

struct DetectionOptions {
  // Images are augmented and have their objects; else they are as they are, have none (`count` is 0), and all count.
  bool training = true;
  ResizeRule resize{};  // the short edge is drawn for each sample in training, else it is max_short_edge
  // An image takes the smallest one that it fits. Empty: a landscape and a portrait one, in multiples of `multiple`.
  std::vector<ImageSize> canvases{};
  int64_t multiple = 32;
  // All images become of this size, whatever their shapes; the three options above say nothing then.
  std::optional<ImageSize> stretch{};
  bool masks = true;  // else objects have no runs, and the masks of the source are not looked at
  // Training only:
  // Images are parts that data/object_crop.h draws, with the objects whose centres are inside. Needs `stretch`, and
  // `masks` to be false.
  bool object_crops = false;
  float flip_probability = 0.5f;
  ColorJitter jitter{};     // by data/color.h: brightness is added, as TensorFlow's recipes do
  double min_area = 1;      // objects of a larger area alone are kept, by what the file states
  bool keep_empty = false;  // images in which no object is left
  // Objects, and runs of all their masks, that an image may have; 0: as many as any has, at the largest size, for which
  // all masks are looked at ahead of time.
  int64_t max_boxes = 0, max_runs = 0;
  DecodeOptions decoding{};

  bool rounds_pixels() const { return stretch.has_value() || resize.rounds_pixels; }
  // Throws Error where an option is out of range.
  void check() const;
};

// Where the fields of a row are, in all layouts. H and W are the canvas', G is max_boxes, R is max_runs.
struct DetectionFields {
  // u8 [H, W, 3], or f32 where ResizeRule does not round pixels; RGB from 0 to 255 at the upper left, 0 elsewhere.
  static constexpr size_t images = 0;
  static constexpr size_t sizes = 1;       // f32 [2], height and width of the image on the canvas
  static constexpr size_t originals = 2;   // f32 [2], those of the file's
  static constexpr size_t image_ids = 3;   // i64 [], -1 where there is no sample
  static constexpr size_t count = 4;       // i32 [], objects
  static constexpr size_t boxes = 5;       // f32 [G, 4], x1, y1, x2, y2 on the canvas
  static constexpr size_t classes = 6;     // i32 [G], from 1
  static constexpr size_t run_begins = 7;  // i32 [G + 1], where in run_ends those of an object begin; none without mask
  static constexpr size_t run_count = 8;   // i32 []
  static constexpr size_t run_ends = 9;    // i32 [R], as RleMasks::ends
};

// Boxes are clipped to the image and left out where nothing remains; crowds are left out. Files keep the orientation
// that they are stored in, which is how COCO's annotations mean them: EXIF's turns nothing. An image whose header does
// not have the size that its annotations state is a bad record, as is one with more objects or runs than there is room
// for. A sample is a function of (seed, epoch, its number) alone.
class DetectionDataset final : public Dataset {
 public:
  // Looks at all annotations. Throws Error where no canvas holds an image.
  DetectionDataset(std::shared_ptr<const DetectionSource> source, const DetectionOptions& options);

  const BatchLayout& layout() const override { return layouts_.front(); }
  std::span<const BatchLayout> layouts() const override { return layouts_; }
  size_t layout_of(uint64_t record) const override { return records_[record].layout; }
  uint64_t size() const override { return records_.size(); }
  const std::vector<uint64_t>& shard_begins() const override { return shard_begins_; }
  RecordLocation locate(uint64_t record) const override { return source_->locate(records_[record].image); }
  const std::vector<std::string>& faults() const override { return source_->faults(); }
  std::vector<std::string> notices() const { return source_->notices(); }
  // Notice about training objects without a mask, which get no mask loss; empty where there are none.
  std::string notice_of_masks() const;
  std::string identity() const override;
  std::string contents() const override;
  std::unique_ptr<SampleReader> reader() const override;

  // Of its images, the files that are not there. Looks for each.
  std::vector<std::string> missing_files() const;
  // What the classes from 1 on stand for.
  const std::vector<coco::Category>& categories() const { return source_->categories(); }
  int64_t max_boxes() const { return max_boxes_; }
  int64_t max_runs() const { return max_runs_; }

 private:
  class Reader;
  struct Record {
    uint64_t image = 0;  // in the source
    uint32_t layout = 0;
  };
  void survey(const std::vector<ImageSize>& canvases);
  void make_layouts(const std::vector<ImageSize>& canvases);
  std::string used() const;

  std::shared_ptr<const DetectionSource> source_;
  DetectionOptions options_;
  int64_t max_boxes_ = 1, max_runs_ = 1;
  uint64_t without_mask_ = 0;       // objects to train on
  std::string first_without_mask_;  // the image of the first of them
  std::vector<Record> records_;
  std::vector<uint64_t> shard_begins_;
  std::vector<BatchLayout> layouts_;
};

}  // namespace dtrain::data
