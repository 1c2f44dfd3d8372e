#include "dtrain/models/detection/presets.h"

#include <cmath>

namespace dtrain::models {
namespace {

DetectorOptions torchvision() {
  DetectorOptions options;
  options.freeze_at = 2;
  options.freeze_norms = true;
  options.rpn.strides_of_maps = true;
  options.rpn.anchors.rounding = AnchorOptions::Rounding::corners;
  return options;
}

// TensorPack's examples/FasterRCNN as of 2019 to 2023.
DetectorOptions tensorpack() {
  constexpr float kLongestSide = 1344;
  DetectorOptions options;
  options.classes = 81;
  options.backbone.padding = StridedPadding::before;
  options.freeze_norms = false;
  options.aligned_rois = true;
  options.rpn.coder.clip = options.box.coder.clip = std::log(kLongestSide / 16);
  options.rpn.match.negative_last = true;
  options.rpn.match.inside_only = true;
  options.rpn.fixed_divisor = true;
  options.rpn.min_side = 0;
  options.box.beta = 0;
  options.box.norm_after_relu = options.mask.norm_after_relu = true;
  options.mask.soft_targets = true;
  options.detection.min_side = 0;
  return options;
}

// Early 2019, the version that trained COCO-R50FPN-MaskRCNN-Standard.npz.
DetectorOptions tensorpack2019() {
  DetectorOptions options = tensorpack();
  options.rpn.anchors.rounding = AnchorOptions::Rounding::detectron;
  options.box.beta = 1;
  return options;
}

// AWS Mask R-CNN, a fork of TensorPack's with several images per device.
DetectorOptions aws() {
  DetectorOptions options = tensorpack();
  options.per_image_means = true;
  options.rpn.training = {4000, 2000};
  options.rpn.evaluation = {2000, 1000};
  options.rpn.min_side = 0.1f;
  return options;
}

}  // namespace

const std::vector<DetectorPreset>& detector_presets() {
  static const std::vector<DetectorPreset> presets = {
      {"torchvision", "torchvision's maskrcnn_resnet50_fpn", torchvision()},
      {"tensorpack", "TensorPack's FasterRCNN example", tensorpack()},
      {"tensorpack2019", "the same with the quantised anchors of early 2019", tensorpack2019()},
      {"aws", "AWS Mask R-CNN, for several images per device", aws()}};
  return presets;
}

const DetectorPreset& detector_preset(std::string_view name) {
  std::string names;
  for (const DetectorPreset& preset : detector_presets()) {
    if (preset.name == name) return preset;
    names += (names.empty() ? "" : ", ") + preset.name;
  }
  throw Error(Fault::config, concat("detector preset '", name, "': expected one of ", names));
}

}  // namespace dtrain::models
