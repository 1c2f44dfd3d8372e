// Detector: Faster and Mask R-CNN (Ren et al. 2015, He et al. 2017) over a feature pyramid or a single map, with one
// box head or a cascade.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dtrain/models/detection/canvas.h"
#include "dtrain/models/detection/fpn.h"
#include "dtrain/models/detection/heads.h"
#include "dtrain/models/detection/rpn.h"
#include "dtrain/models/detection/truth.h"
#include "dtrain/ops/roi_samples.h"
#include "dtrain/train/loss.h"

namespace dtrain::models {

// Detections in n images, at most d per image, by descending score.
struct Detections {
  Tensor boxes;    // [n, d, 4] f32, in pixels of the canvas; 0 beyond the count
  Tensor scores;   // [n, d] f32
  Tensor classes;  // [n, d] i32
  Tensor counts;   // [n] i32
  // [m, s, s] f32, probability of each cell, for the m detections of all images in order; undefined for a detector
  // without masks or without any detection.
  Tensor masks{};
  Proposals proposals{};  // the region proposals
};

class Detector {
 public:
  // Parameters have the names of torchvision's maskrcnn_resnet50_fpn; the heads of a cascade are roi_heads.stage1 and
  // so on. Without a pyramid the backbone's fourth stage, layer4, belongs to the heads. Throws Error for contradictory
  // options.
  explicit Detector(ParameterStore& store, const DetectorOptions& options = {});

  // The options, with the values that pyramid or C4 implies filled in.
  const DetectorOptions& options() const { return options_; }
  Canvas canvas(Context& context, int64_t height, int64_t width) const;

  // Feature maps of the pyramid, or the single map, of normalised images [n, height, width, 3] padded with 0.
  std::vector<Var> features(Tape& tape, const Var& images) const;
  const Rpn& rpn() const { return rpn_; }
  // Losses by name: objectness_loss, rpn_box_loss, class_loss, box_loss and mask_loss. Each head of a cascade has
  // separate ones, such as cascade_rcnn_stage1_class_loss. Does not synchronise with a GPU.
  Loss loss(Tape& tape, const Canvas& canvas, const Var& images, const DetectionTruth& truth) const;
  // Needs a tape in Mode::eval; sizes [n, 2] f32 as DetectionTruth::sizes. Waits for the device.
  Detections detect(Tape& tape, const Canvas& canvas, const Var& images, const Tensor& sizes) const;

 private:
  // Scored boxes before non-maximum suppression.
  struct Scored {
    Tensor boxes;          // [r, classes, 4]
    Tensor probabilities;  // [r, classes]
  };
  // ROI Align of regions rois [r, 4] of images [r] i32 -> [r, s, s, channels], where s is the resolution of the heads,
  // or C4Options::resolution without a pyramid.
  Var align(Tape& tape, const std::vector<Var>& maps, const Tensor& rois, const Tensor& images, int resolution) const;
  // Input of the heads: without a pyramid, the fourth stage is applied to the aligned features.
  Var after_align(Tape& tape, const Var& aligned) const;
  // align() and after_align().
  Var pool(Tape& tape, const std::vector<Var>& maps, const Tensor& rois, const Tensor& images, int resolution) const;
  // Input features of the box heads.
  Var box_features(Tape& tape, const std::vector<Var>& maps, const Tensor& rois, const Tensor& images) const;
  BoxCoder coder(size_t stage) const;  // of a box head
  RoiSamples draw_regions(Tape& tape, const Tensor& proposals, const DetectionTruth& truth) const;
  // Losses of all box heads by name. `regions` are the input of the first one.
  std::vector<std::pair<std::string, Var>> box_losses(Tape& tape, const std::vector<Var>& maps, RoiSamples regions,
                                                      const DetectionTruth& truth) const;
  Var box_loss(Tape& tape, const Var& deltas, const RoiSamples& regions, int64_t images) const;
  // Mask logits of regions in their ground-truth classes [r] i32, [1, r * cells].
  Var own_masks(Tape& tape, const Var& aligned, const Tensor& classes) const;
  // The same where only the first count [1] f32 regions are valid; results of the padding are undefined.
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
  std::vector<BoxHead> box_heads_;  // one, or one per stage of a cascade
  std::optional<MaskHead> mask_head_;
};

// Freezes the parameters of a detector that the options exclude from training.
void freeze(ParameterStore& store, const DetectorOptions& options);

}  // namespace dtrain::models
