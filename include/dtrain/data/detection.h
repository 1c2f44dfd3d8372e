// DetectionDataset: images on canvases of a few fixed sizes, with boxes, classes and masks of their objects.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dtrain/data/augment.h"
#include "dtrain/data/color_jitter.h"
#include "dtrain/data/detection_geometry.h"
#include "dtrain/data/detection_source.h"

namespace dtrain::data {

struct DetectionDatasetOptions {
  // Augments images and provides their objects; else images are unchanged, without objects (`count` is 0), and none is
  // skipped.
  bool training = true;
  ResizeRule resize{};  // the short edge is random per sample in training, else max_short_edge
  // Each image uses the smallest canvas that fits. Empty: one landscape and one portrait canvas, in multiples of
  // `multiple`.
  std::vector<ImageSize> canvases{};
  int64_t multiple = 32;
  // Resizes all images to this size, ignoring aspect ratio and the three options above.
  std::optional<ImageSize> stretch{};
  bool masks = true;  // false: objects have no runs, and masks are not parsed
  // Training only:
  // SSD crops of data/object_crop.h, with the objects whose centres are inside. Requires `stretch` and no `masks`.
  bool object_crops = false;
  float flip_probability = 0.5f;
  ColorJitter jitter{};     // see data/color.h; brightness is additive, as in TensorFlow's recipes
  double min_area = 1;      // objects must have a larger area, as stated in the file, in pixels
  bool keep_empty = false;  // keep images without remaining objects
  // Capacity for objects, and for mask runs, per image; 0: the maximum over the data set at the largest size, which
  // parses all masks in advance.
  int64_t max_boxes = 0, max_runs = 0;
  DecodeOptions decoding{};

  bool rounds_pixels() const { return stretch.has_value() || resize.rounds_pixels; }
  // Throws Error for an option out of range.
  void check() const;
};

// Field indices in all layouts. H and W are the canvas size, G is max_boxes, R is max_runs.
struct DetectionFields {
  // u8 [H, W, 3], or f32 if ResizeRule does not round pixels; RGB in [0, 255], aligned to the upper left, 0 elsewhere.
  static constexpr size_t images = 0;
  static constexpr size_t sizes = 1;       // f32 [2], height and width of the image on the canvas
  static constexpr size_t originals = 2;   // f32 [2], height and width of the file
  static constexpr size_t image_ids = 3;   // i64 [], -1 for padding
  static constexpr size_t count = 4;       // i32 [], objects
  static constexpr size_t boxes = 5;       // f32 [G, 4], x1, y1, x2, y2 on the canvas
  static constexpr size_t classes = 6;     // i32 [G], from 1
  static constexpr size_t run_begins = 7;  // i32 [G + 1], first run in run_ends of each object; no runs: no mask
  static constexpr size_t run_count = 8;   // i32 []
  static constexpr size_t run_ends = 9;    // i32 [R], as RleMasks::ends
};

// Boxes are clipped to the image and dropped if nothing remains; crowds are dropped. EXIF orientation is ignored, as in
// COCO's annotations. An image whose header disagrees with the annotated size is a bad record, as is one that exceeds
// the capacity for objects or runs. A sample is a pure function of (seed, epoch, index).
class DetectionDataset final : public Dataset {
 public:
  // Scans all annotations. Throws Error if no canvas holds an image.
  DetectionDataset(std::shared_ptr<const DetectionSource> source, const DetectionDatasetOptions& options);

  const BatchLayout& layout() const override { return layouts_.front(); }
  std::span<const BatchLayout> layouts() const override { return layouts_; }
  size_t layout_of(uint64_t record) const override { return records_[record].layout; }
  uint64_t size() const override { return records_.size(); }
  const std::vector<uint64_t>& shard_begins() const override { return shard_begins_; }
  RecordLocation locate(uint64_t record) const override { return source_->locate(records_[record].image); }
  void prefetch(uint64_t record) const override { source_->prefetch(records_[record].image); }
  bool can_prefetch() const override { return source_->can_prefetch(); }
  const std::vector<std::string>& faults() const override { return source_->faults(); }
  std::vector<std::string> notices() const { return source_->notices(); }
  // Notice about training objects without a mask, which have no mask loss; empty without any.
  std::string notice_of_masks() const;
  std::string identity() const override;
  std::string contents() const override;
  std::unique_ptr<SampleReader> reader() const override;

  // Missing image files; checks each, and lists folders in object storage. Throws Error(Fault::resource) if a server
  // does not answer.
  std::vector<std::string> missing_files() const;
  // Categories of the classes from 1 on.
  const std::vector<coco::Category>& categories() const { return source_->categories(); }
  int64_t max_boxes() const { return max_boxes_; }
  int64_t max_runs() const { return max_runs_; }

 private:
  class Reader;
  struct Record {
    uint64_t image = 0;  // index in the source
    uint32_t layout = 0;
  };
  void survey(const std::vector<ImageSize>& canvases);
  void make_layouts(const std::vector<ImageSize>& canvases);
  std::string used() const;

  std::shared_ptr<const DetectionSource> source_;
  DetectionDatasetOptions options_;
  int64_t max_boxes_ = 1, max_runs_ = 1;
  uint64_t without_mask_ = 0;       // training objects
  std::string first_without_mask_;  // image of the first one
  std::vector<Record> records_;
  std::vector<uint64_t> shard_begins_;
  std::vector<BatchLayout> layouts_;
};

// Deprecated name, removed with the next minor version: docs/migration.md.
using DetectionOptions [[deprecated("renamed: DetectionDatasetOptions")]] = DetectionDatasetOptions;

}  // namespace dtrain::data
