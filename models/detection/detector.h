// Detector: Faster and Mask R-CNN (Ren et al. 2015, He et al. 2017) over a feature pyramid, with one box head or a
// cascade of them, or over a single map.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "libdtrain/ops/roi_samples.h"
#include "libdtrain/train/loss.h"
#include "models/detection/canvas.h"
#include "models/detection/fpn.h"
#include "models/detection/heads.h"
#include "models/detection/rpn.h"
#include "models/detection/truth.h"

namespace dtrain::models {

// What was found in n images, d places for each, by descending score.
struct Detections {
  Tensor boxes;    // [n, d, 4] f32, on the canvas; what is beyond the count is 0
  Tensor scores;   // [n, d] f32
  Tensor classes;  // [n, d] i32
  Tensor counts;   // [n] i32
  // [m, s, s] f32, the probability of each cell, of the m detections of all images one after the other; undefined for a
  // detector without masks, and where nothing was found.
  Tensor masks{};
  Proposals proposals{};  // what the boxes were found among
};

class Detector {
 public:
  // Parameters have torchvision's names for maskrcnn_resnet50_fpn; the heads of a cascade are roi_heads.stage1 and so
  // on. Without a pyramid the backbone's fourth stage, layer4, is a part of the heads. Throws Error where the options
  // make no detector.
  Detector(ParameterStore& store, const DetectorOptions& options);

  // With what the form of the detector says of its parts.
  const DetectorOptions& options() const { return options_; }
  Canvas canvas(Context& context, int64_t height, int64_t width) const;

  // The maps of the pyramid, or the single one, of images [n, height, width, 3] that are normalised, and 0 where they
  // are padding.
  std::vector<Var> features(Tape& tape, const Var& images) const;
  const Rpn& rpn() const { return rpn_; }
  // The losses, by name: objectness_loss, rpn_box_loss, class_loss, box_loss and mask_loss; in a cascade each head has
  // its own, as cascade_rcnn_stage1_class_loss. On a GPU nothing waits for the device.
  Loss loss(Tape& tape, const Canvas& canvas, const Var& images, const DetectionTruth& truth) const;
  // On a tape in Mode::eval; sizes [n, 2] f32 as DetectionTruth::sizes. Waits for the device.
  Detections detect(Tape& tape, const Canvas& canvas, const Var& images, const Tensor& sizes) const;

 private:
  // What was found in regions before suppression.
  struct Scored {
    Tensor boxes;          // [r, classes, 4]
    Tensor probabilities;  // [r, classes]
  };
  // Regions rois [r, 4] of images [r] i32 -> [r, s, s, channels], where the resolution s is that of the heads, or,
  // without a pyramid, C4Options::resolution.
  Var align(Tape& tape, const std::vector<Var>& maps, const Tensor& rois, const Tensor& images, int resolution) const;
  // What the heads read of that: without a pyramid, what the fourth stage makes of it.
  Var after_align(Tape& tape, const Var& aligned) const;
  // Both in one.
  Var pool(Tape& tape, const std::vector<Var>& maps, const Tensor& rois, const Tensor& images, int resolution) const;
  // What the box heads read of regions.
  Var box_features(Tape& tape, const std::vector<Var>& maps, const Tensor& rois, const Tensor& images) const;
  BoxCoder coder(size_t stage) const;  // of a box head
  RoiSamples draw_regions(Tape& tape, const Tensor& proposals, const DetectionTruth& truth) const;
  // The losses of all box heads, by name. `regions` are those of the first.
  std::vector<std::pair<std::string, Var>> box_losses(Tape& tape, const std::vector<Var>& maps, RoiSamples regions,
                                                      const DetectionTruth& truth) const;
  Var box_loss(Tape& tape, const Var& deltas, const RoiSamples& regions, int64_t images) const;
  // The logits of the masks of regions in their own classes [r] i32, [1, r * cells].
  Var own_masks(Tape& tape, const Var& aligned, const Tensor& classes) const;
  // The same where padding follows the first count [1] f32 regions: what becomes of that is undefined.
  Var masks_of_positives(Tape& tape, const Var& aligned, const Tensor& classes, const Tensor& count) const;
  Var mask_loss(Tape& tape, const std::vector<Var>& maps, const RoiSamples& regions, const DetectionTruth& truth) const;
  Scored score_regions(Tape& tape, const std::vector<Var>& maps, const Tensor& rois, const Tensor& images,
                       const Tensor& sizes) const;
  Detections find_boxes(Tape& tape, const std::vector<Var>& maps, const Proposals& proposals,
                        const Tensor& sizes) const;
  Tensor masks_of(Tape& tape, const std::vector<Var>& maps, const Detections& found) const;

  DetectorOptions options_;
  Trace trace_{224};
  ResNet backbone_;
  std::optional<Fpn> fpn_;
  Rpn rpn_;
  std::vector<BoxHead> box_heads_;  // one, or those of a cascade
  std::optional<MaskHead> mask_head_;
};

// Freezes what the options say of the parameters of a detector, as Detector names them.
void freeze(ParameterStore& store, const DetectorOptions& options);

}  // namespace dtrain::models
