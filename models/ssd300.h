// SSD300 (Liu et al. 2016) over a ResNet-34, as tf_cnn_benchmarks and MLPerf have it: the first three stages, of which
// the third does not stride, five further maps, and a dense head on each of the six.
#pragma once

#include <array>
#include <tuple>
#include <vector>

#include "libdtrain/layers.h"
#include "libdtrain/ops/boxes.h"
#include "libdtrain/train/loss.h"
#include "models/detection/detector.h"
#include "models/detection/truth.h"
#include "models/resnet.h"

namespace dtrain::models {

inline constexpr int64_t kSsdSide = 300;    // of an image, in pixels
inline constexpr int64_t kSsdBoxes = 8732;  // default boxes

// The default boxes in the order of tf_cnn_benchmarks: map by map, shape by shape, row by row, column by column. x1,
// y1, x2, y2 in pixels; boxes may reach out of the image.
std::vector<std::array<float, 4>> ssd_default_boxes();
// The number in ssd_default_boxes() of each box that the heads speak of: map by map, and in a map cell by cell.
std::vector<int32_t> ssd_head_order();

struct SsdOptions {
  int64_t classes = 81;  // with the background
  BatchNormOptions batch_norm{.epsilon = 1e-4f, .momentum = 0.997f};
  int negatives_per_positive = 3;
  float match_threshold = 0.5f;
  // Of a detection: what scores more than this, and of two of one class that overlap more than this the better one.
  float score_threshold = 0.05f, nms_threshold = 0.5f;
  int64_t per_image = 200;
};

class Ssd300 {
 public:
  // The backbone has torchvision's names of ResNet-34; `additional_blocks.I.0` and `.2`, `loc.I` and `conf.I` are those
  // of MLPerf's reference. Throws Error where there are not two classes at least.
  Ssd300(ParameterStore& store, const SsdOptions& options);

  struct Output {
    Var deltas;  // [n, 8732, 4]
    Var logits;  // [n, 8732, classes]
  };
  // images [n, 300, 300, 3], normalised
  Output operator()(Tape& tape, const Var& images) const;
  // The losses of boxes and classes, with the metrics box_loss and class_loss: each is divided by the matched boxes of
  // its image, and averaged over the images. Boxes of the truth must have an area. Masks are not looked at.
  Loss loss(Tape& tape, const Var& images, const DetectionTruth& truth) const;
  Loss loss(Tape& tape, const Output& output, const DetectionTruth& truth) const;
  // On a tape in Mode::eval. Waits for the device.
  Detections detect(Tape& tape, const Var& images) const;
  Detections detect(Context& context, const Output& output) const;

  const SsdOptions& options() const { return options_; }
  // [8732, 4] in the order of the heads.
  const Tensor& default_boxes() const { return boxes_; }

 private:
  SsdOptions options_;
  Trace trace_{kSsdSide};
  ResNet backbone_;
  std::vector<std::array<Conv2d, 2>> additional_;
  std::vector<Conv2d> loc_, conf_;
  Tensor boxes_;
};

}  // namespace dtrain::models
