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
  int64_t classes = 81;              // with the background
  std::vector<int> blocks{3, 4, 6};  // of the backbone's stages: those of ResNet-34
  BatchNormOptions batch_norm{.epsilon = 1e-4f, .momentum = 0.997f};
  int negatives_per_positive = 3;
  float match_threshold = 0.5f;
  // Detections score more than this; of two of one class whose IoU is larger than this the better one is taken.
  float score_threshold = 0.05f, nms_threshold = 0.5f;
  int64_t per_class = 200;  // boxes of an image and a class, the best ones, that are looked at
  int64_t per_image = 200;  // detections, of all classes
};

// The backbone: the first three stages of a ResNet, with the names of torchvision's.
ResNetOptions ssd_backbone(const SsdOptions& options);

class Ssd300 {
 public:
  // The layers after the backbone have the names of MLPerf's reference: `additional_blocks.I.0` and `.2`, `loc.I` and
  // `conf.I`. The channels of `loc` and `conf` are shape by shape, as tf_cnn_benchmarks has them; MLPerf's are
  // coordinate by coordinate and class by class. Throws Error where there are not two classes at least, or not three
  // stages.
  Ssd300(ParameterStore& store, const SsdOptions& options);

  struct Output {
    Var deltas;  // [n, 8732, 4]
    Var logits;  // [n, 8732, classes]
  };
  // images [n, 300, 300, c], normalised, with as many channels as ParameterStore::image_channels()
  Output operator()(Tape& tape, const Var& images) const;
  // The losses of boxes and classes, with the metrics box_loss and class_loss: each is divided by the matched boxes of
  // its image, and averaged over the images. Nothing is matched with a box without an area. Sizes and masks are not
  // looked at.
  Loss loss(Tape& tape, const Var& images, const DetectionTruth& truth) const;
  Loss loss(Tape& tape, const Output& output, const DetectionTruth& truth) const;
  // On a tape in Mode::eval, else it throws Error. Boxes may reach out of the image. Does not wait for the device.
  Detections detect(Tape& tape, const Var& images) const;
  Detections detect(Context& context, const Output& output) const;

  const SsdOptions& options() const { return options_; }
  // [8732, 4] in the order of the heads.
  const Tensor& default_boxes() const { return boxes_; }

 private:
  // boxes [n, classes * per_class, 4] and their scores [n, classes * per_class], class by class; zeros are no boxes.
  Detections best_of_all_classes(Context& context, const Tensor& boxes, const Tensor& scores) const;

  SsdOptions options_;
  Trace trace_{kSsdSide};
  ResNet backbone_;
  std::vector<std::array<Conv2d, 2>> additional_;
  std::vector<Conv2d> loc_, conf_;
  Tensor boxes_, place_classes_;
};

}  // namespace dtrain::models
