// SSD300 (Liu et al. 2016) with a ResNet-34 backbone, as in tf_cnn_benchmarks and MLPerf: the first three stages, the
// third without stride, five further maps, and a dense head on each of the six maps.
#pragma once

#include <array>
#include <tuple>
#include <vector>

#include "dtrain/layers.h"
#include "dtrain/models/detection/detector.h"
#include "dtrain/models/detection/truth.h"
#include "dtrain/models/resnet.h"
#include "dtrain/ops/boxes.h"
#include "dtrain/train/loss.h"

namespace dtrain::models {

inline constexpr int64_t kSsdSide = 300;    // image height and width, in pixels
inline constexpr int64_t kSsdBoxes = 8732;  // default boxes

// Default boxes in the order of tf_cnn_benchmarks: by map, shape, row, column. x1, y1, x2, y2 in pixels; boxes may
// exceed the image.
std::vector<std::array<float, 4>> ssd_default_boxes();
// Index in ssd_default_boxes() of each box in the order of the heads' outputs: by map, cell, shape.
std::vector<int32_t> ssd_head_order();

struct SsdOptions {
  int64_t classes = 81;              // including background
  std::vector<int> blocks{3, 4, 6};  // per stage of the backbone, as in ResNet-34
  BatchNormOptions batch_norm{.epsilon = 1e-4f, .momentum = 0.997f};
  int negatives_per_positive = 3;
  float match_threshold = 0.5f;
  // Minimum score of detections, and IoU threshold of the per-class non-maximum suppression.
  float score_threshold = 0.05f, nms_threshold = 0.5f;
  int64_t per_class = 200;  // top-k boxes per image and class before suppression
  int64_t per_image = 200;  // top-k detections per image over all classes
};

// The first three stages of a ResNet, with torchvision's names.
ResNetOptions ssd_backbone(const SsdOptions& options);

class Ssd300 {
 public:
  // The layers after the backbone have the names of the MLPerf reference: `additional_blocks.I.0` and `.2`, `loc.I` and
  // `conf.I`. Channels of `loc` and `conf` are ordered shape by shape, as in tf_cnn_benchmarks; in MLPerf by coordinate
  // and class first. Throws Error for fewer than two classes, or other than three stages.
  explicit Ssd300(ParameterStore& store, const SsdOptions& options = {});

  struct Output {
    Var deltas;  // [n, 8732, 4]
    Var logits;  // [n, 8732, classes]
  };
  // images [n, 300, 300, c], normalised, with ParameterStore::image_channels() channels.
  Output operator()(Tape& tape, const Var& images) const;
  // Losses of boxes and classes, with metrics box_loss and class_loss. Each is divided by the number of matched boxes
  // of its image and averaged over images. Ground truth of zero area is never matched. Sizes and masks of `truth` are
  // ignored.
  Loss loss(Tape& tape, const Var& images, const DetectionTruth& truth) const;
  Loss loss(Tape& tape, const Output& output, const DetectionTruth& truth) const;
  // Throws Error unless the tape is in Mode::eval. Boxes may exceed the image. Does not wait for the device.
  Detections detect(Tape& tape, const Var& images) const;
  Detections detect(Context& context, const Output& output) const;

  const SsdOptions& options() const { return options_; }
  // [8732, 4] in the order of the heads' outputs.
  const Tensor& default_boxes() const { return boxes_; }

 private:
  // boxes [n, classes * per_class, 4] and scores [n, classes * per_class], class by class; zeros are padding.
  Detections best_of_all_classes(Context& context, const Tensor& boxes, const Tensor& scores) const;

  SsdOptions options_;
  Trace trace_{kSsdSide};
  ResNet backbone_;
  std::vector<std::array<Conv2d, 2>> additional_;
  std::vector<Conv2d> loc_, conf_;
  Tensor boxes_, place_classes_;
};

}  // namespace dtrain::models
