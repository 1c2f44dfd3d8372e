#include "models/detection/detectron2_names.h"

namespace dtrain::models {
namespace {

constexpr LayerName kLayers[] = {
    {.ours = "backbone.body.conv1", .theirs = "backbone.bottom_up.stem.conv1", .bgr = true},
    {"backbone.body.layer#.#.conv#", "backbone.bottom_up.res#.#.conv#", 1},
    {"backbone.body.layer#.#.downsample.0", "backbone.bottom_up.res#.#.shortcut", 1},
    {"backbone.fpn.inner_blocks.#.0", "backbone.fpn_lateral#", 2},
    {"backbone.fpn.layer_blocks.#.0", "backbone.fpn_output#", 2},
    {"rpn.head.conv.0.0", "proposal_generator.rpn_head.conv"},
    {"rpn.head.cls_logits", "proposal_generator.rpn_head.objectness_logits"},
    {"rpn.head.bbox_pred", "proposal_generator.rpn_head.anchor_deltas"},
    {"roi_heads.box_head.fc#", "roi_heads.box_head.fc#", -5},
    {"roi_heads.box_head.#.0", "roi_heads.box_head.conv#", 1},
    {"roi_heads.box_head.5", "roi_heads.box_head.fc1"},  // after four convolutions
    {"roi_heads.box_head.7", "roi_heads.box_head.fc2"},
    {"roi_heads.box_predictor.cls_score", "roi_heads.box_predictor.cls_score", 0, ClassOrder::background_last},
    {"roi_heads.box_predictor.bbox_pred", "roi_heads.box_predictor.bbox_pred", 0, ClassOrder::no_background, 4},
    {"roi_heads.mask_head.#.0", "roi_heads.mask_head.mask_fcn#", 1},
    {"roi_heads.mask_predictor.conv5_mask", "roi_heads.mask_head.deconv"},
    {"roi_heads.mask_predictor.mask_fcn_logits", "roi_heads.mask_head.predictor", 0, ClassOrder::no_background}};
constexpr LayerName kNorms[] = {{"backbone.body.bn1", "backbone.bottom_up.stem.conv1.norm"},
                                {"backbone.body.layer#.#.bn#", "backbone.bottom_up.res#.#.conv#.norm", 1},
                                {"backbone.body.layer#.#.downsample.1", "backbone.bottom_up.res#.#.shortcut.norm", 1},
                                {"roi_heads.box_head.#.1", "roi_heads.box_head.conv#.norm", 1},
                                {"roi_heads.mask_head.#.1", "roi_heads.mask_head.mask_fcn#.norm", 1}};
constexpr PartName kOfLayer[] = {{".weight", ".weight"}, {".bias", ".bias"}};
constexpr PartName kOfNorm[] = {
    {".weight", ".weight"}, {".bias", ".bias"}, {".running_mean", ".running_mean"}, {".running_var", ".running_var"}};
// Constants saved by older versions, and PyTorch's batch counter.
constexpr std::string_view kExtras[] = {"pixel_mean", "pixel_std", "anchor_generator.cell_anchors.",
                                        ".num_batches_tracked"};

constexpr std::string_view kScores[] = {"roi_heads.box_predictor.cls_score.bias"};

}  // namespace

const WeightNames& detectron2_names() {
  static const WeightNames names{"detectron2", "detectron2", ArrayOrder::torch, kLayers, kNorms,
                                 kOfLayer,     kOfNorm,      kExtras,           kScores};
  return names;
}

}  // namespace dtrain::models
