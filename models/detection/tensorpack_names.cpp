#include "models/detection/tensorpack_names.h"

#include <algorithm>

namespace dtrain::models {
namespace {

constexpr LayerName kLayers[] = {
    {.ours = "backbone.body.conv1", .theirs = "conv0", .bgr = true},
    {"backbone.body.layer#.#.conv#", "group#/block#/conv#", -1},
    {"backbone.body.layer#.#.downsample.0", "group#/block#/convshortcut", -1},
    {"backbone.fpn.inner_blocks.#.0", "fpn/lateral_1x1_c#", 2},
    {"backbone.fpn.layer_blocks.#.0", "fpn/posthoc_3x3_p#", 2},
    {"rpn.head.conv.0.0", "rpn/conv0"},
    {"rpn.head.cls_logits", "rpn/class"},
    {"rpn.head.bbox_pred", "rpn/box"},
    {"roi_heads.box_head.fc#", "fastrcnn/fc#"},
    {"roi_heads.box_head.#.0", "fastrcnn/conv#"},
    {"roi_heads.box_head.5", "fastrcnn/fc"},  // after four convolutions
    {"roi_heads.box_predictor.cls_score", "fastrcnn/outputs/class"},
    {"roi_heads.box_predictor.bbox_pred", "fastrcnn/outputs/box"},
    {"roi_heads.stage#.box_head.fc#", "cascade_rcnn_stage#/head/fc#"},
    {"roi_heads.stage#.box_head.#.0", "cascade_rcnn_stage#/head/conv#"},
    {"roi_heads.stage#.box_head.5", "cascade_rcnn_stage#/head/fc"},
    {"roi_heads.stage#.box_predictor.cls_score", "cascade_rcnn_stage#/outputs/class"},
    {"roi_heads.stage#.box_predictor.bbox_pred", "cascade_rcnn_stage#/outputs/box"},
    {"roi_heads.mask_head.#.0", "maskrcnn/fcn#"},
    {"roi_heads.mask_predictor.conv5_mask", "maskrcnn/deconv"},
    {"roi_heads.mask_predictor.mask_fcn_logits", "maskrcnn/conv", 0, ClassOrder::no_background}};
constexpr LayerName kNorms[] = {{"backbone.body.bn1", "conv0/bn"},
                                {"backbone.body.layer#.#.bn#", "group#/block#/conv#/bn", -1},
                                {"backbone.body.layer#.#.downsample.1", "group#/block#/convshortcut/bn", -1},
                                {"backbone.fpn.inner_blocks.#.1", "fpn/gn_c#", 2},
                                {"backbone.fpn.layer_blocks.#.1", "fpn/gn_p#", 2},
                                {"roi_heads.box_head.#.1", "fastrcnn/gn#"},
                                {"roi_heads.stage#.box_head.#.1", "cascade_rcnn_stage#/head/gn#"},
                                {"roi_heads.mask_head.#.1", "maskrcnn/gn#"}};
constexpr PartName kOfLayer[] = {{".weight", "/W"}, {".bias", "/b"}};
constexpr PartName kOfNorm[] = {
    {".weight", "/gamma"}, {".bias", "/beta"}, {".running_mean", "/mean/EMA"}, {".running_var", "/variance/EMA"}};
// Optimiser state and the ImageNet classifier.
constexpr std::string_view kExtras[] = {"/Momentum", "/AccumGrad", "learning_rate", "global_step", "linear/"};

constexpr std::string_view kScores[] = {"fastrcnn/outputs/class/b", "fastrcnn/class/b",
                                        "cascade_rcnn_stage1/outputs/class/b"};

// Replaces `part` in `name`, if present.
std::string with_part(std::string name, std::string_view part, std::string_view by) {
  const size_t at = name.find(part);
  return at == name.npos ? name : name.replace(at, part.size(), by);
}

// Norms without statistics are group norms. Without a pyramid the score layers have no scope.
std::string in_form(const ParameterStore& store, const std::string& ours, std::string theirs) {
  const std::string statistics = ours.substr(0, ours.rfind('.')) + ".running_mean";
  if (std::ranges::find(store.buffers(), statistics, &Buffer::name) == store.buffers().end())
    theirs = with_part(std::move(theirs), "/bn/", "/gn/");
  if (std::ranges::find(store.parameters(), "backbone.fpn.inner_blocks.0.0.weight", &Parameter::name) ==
      store.parameters().end())
    theirs = with_part(std::move(theirs), "fastrcnn/outputs/", "fastrcnn/");
  return theirs;
}

}  // namespace

const WeightNames& tensorpack_names() {
  static const WeightNames names{
      "tensorpack", "TensorPack", ArrayOrder::tensorflow, kLayers, kNorms, kOfLayer, kOfNorm, kExtras,
      kScores,      in_form};
  return names;
}

}  // namespace dtrain::models
