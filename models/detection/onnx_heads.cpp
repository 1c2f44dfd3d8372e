// Heads of a detector's ONNX graph: ROI Align, classes and boxes, masks.
#include <cmath>

#include "dtrain/ops/roi_align.h"
#include "models/detection/onnx_parts.h"

namespace dtrain::models {
namespace {

using Ints = std::vector<int64_t>;

constexpr int64_t kLowest = 2, kHighest = 5;  // pyramid levels of regions
constexpr float kEpsilon = 1e-5f;             // of GroupNorm
constexpr char kHeads[] = "roi_heads.";

// roi_levels(): pyramid level of each region, f32.
OnnxValue levels_of(OnnxGraph& graph, const OnnxValue& rois) {
  const RoiLevels rule{};
  const auto corner = graph.add("Split", 2, {rois}, {{"axis", int64_t{1}}});
  const OnnxValue area = graph.add("ReduceProd", {graph.add("Sub", {corner[1], corner[0]})},
                                   {{"axes", Ints{1}}, {"keepdims", int64_t{0}}});
  const OnnxValue size = graph.add("Div", {graph.add("Sqrt", {area}), graph.scalar(rule.canonical_size)});
  OnnxValue level = graph.add("Div", {graph.add("Log", {size}), graph.scalar(std::log(2.0f))});
  level = graph.add("Add", {level, graph.scalar(static_cast<float>(rule.canonical_level))});
  level = graph.add("Floor", {graph.add("Add", {level, graph.scalar(rule.epsilon)})});
  return graph.add("Clip",
                   {level, graph.scalar(static_cast<float>(kLowest)), graph.scalar(static_cast<float>(kHighest))});
}

// `head`: BoxHeadOptions or MaskHeadOptions.
template <class Options>
OnnxValue tower(OnnxLayers& layers, OnnxValue x, const std::string& path, const Options& head) {
  const Shape chw{head.channels, head.resolution, head.resolution};
  for (int i = 0; i < head.convolutions; ++i) {
    const std::string layer = path + "." + std::to_string(i);
    x = layers.conv(x, layer + ".0", {.padding = 1});
    const auto norm = [&] { x = layers.group_norm(x, layer + ".1", chw, kNormGroups, kEpsilon); };
    if (head.group_norm && !head.norm_after_relu) norm();
    x = layers.relu(x);
    if (head.group_norm && head.norm_after_relu) norm();
  }
  return x;
}

struct BoxOutput {
  OnnxValue logits, deltas;  // [p, classes], [p, classes, 4]
};
BoxOutput box_head(OnnxGraph& graph, OnnxLayers& layers, const DetectorOptions& options, const OnnxValue& regions) {
  const BoxHeadOptions& o = options.box;
  const std::string head = std::string(kHeads) + "box_head", predictor = std::string(kHeads) + "box_predictor.";
  OnnxValue x = tower(layers, regions, head, o);
  x = graph.add("Flatten", {x});
  for (int i = 0; i < o.linear_layers; ++i) x = layers.relu(layers.linear(x, head + "." + linear_name(o, i)));
  if (layers.rows(predictor + "bbox_pred.weight") != 4 * options.classes)
    throw Error(Fault::config, "ONNX: class-agnostic boxes cannot be exported");
  const OnnxValue deltas =
      graph.add("Reshape", {layers.linear(x, predictor + "bbox_pred"), graph.ints({-1, options.classes, 4})});
  return {layers.linear(x, predictor + "cls_score"), deltas};
}

// [p, classes, ...] -> class by class, without background.
OnnxValue by_class(OnnxGraph& graph, const OnnxValue& x, const Ints& order) {
  const OnnxValue classes = graph.add("Transpose", {x}, {{"perm", order}});
  return graph.add("Slice", {classes, graph.ints({1}), graph.ints({INT64_MAX}), graph.ints({0})});
}

OnnxValue column(OnnxGraph& graph, const OnnxValue& x, int64_t number) {
  return graph.add("Gather", {x, graph.integer(number)}, {{"axis", int64_t{1}}});
}

// Sorts rows of (class, 0, region) by region, so that ties in score are resolved as in Detector.
OnnxValue by_region(OnnxGraph& graph, const OnnxValue& kept, int64_t classes) {
  const OnnxValue region = graph.add("Mul", {column(graph, kept, 2), graph.integer(classes)});
  const OnnxValue key = graph.add("Add", {region, column(graph, kept, 0)});
  const auto sorted = graph.add("TopK", 2, {key, graph.add("Shape", {key})}, {{"largest", int64_t{0}}});
  return graph.add("Gather", {kept, sorted[1]});
}

}  // namespace

// Pools each level's regions separately, then restores their order.
OnnxValue onnx_pooled(OnnxGraph& graph, const std::vector<OnnxValue>& maps, const OnnxValue& rois, int resolution,
                      bool aligned) {
  const OnnxValue levels = levels_of(graph, rois);
  std::vector<OnnxValue> pooled, places;
  for (int64_t level = kLowest; level <= kHighest; ++level) {
    const OnnxValue here = graph.add("Equal", {levels, graph.scalar(static_cast<float>(level))});
    const OnnxValue rows = graph.add("Reshape", {graph.add("NonZero", {here}), graph.ints({-1})});
    const OnnxValue own = graph.add("Gather", {rois, rows}), first_image = graph.add("Sub", {rows, rows});
    pooled.push_back(graph.add("RoiAlign", {maps[static_cast<size_t>(level - kLowest)], own, first_image},
                               {{"coordinate_transformation_mode", aligned ? "half_pixel" : "output_half_pixel"},
                                {"mode", "avg"},
                                {"output_height", int64_t{resolution}},
                                {"output_width", int64_t{resolution}},
                                {"sampling_ratio", int64_t{2}},
                                {"spatial_scale", 1.0f / static_cast<float>(int64_t{1} << level)}}));
    places.push_back(rows);
  }
  const OnnxValue order = graph.add("Concat", places, {{"axis", int64_t{0}}});
  const auto inverse = graph.add("TopK", 2, {order, graph.add("Shape", {order})}, {{"largest", int64_t{0}}});
  return graph.add("Gather", {graph.add("Concat", pooled, {{"axis", int64_t{0}}}), inverse[1]});
}

OnnxFound onnx_found(OnnxGraph& graph, OnnxLayers& layers, const DetectorOptions& options,
                     const std::vector<OnnxValue>& maps, const OnnxValue& proposals, const OnnxBounds& bounds) {
  const DetectionOptions& limits = options.detection;
  const OnnxValue regions = onnx_pooled(graph, maps, proposals, options.box.resolution, options.aligned_rois);
  const BoxOutput output = box_head(graph, layers, options, regions);
  const OnnxValue anchors = graph.add("Unsqueeze", {proposals, graph.ints({1})});
  const OnnxValue decoded = onnx_decoded(graph, options.box.coder, output.deltas, anchors, bounds);
  const OnnxValue probabilities = graph.add("Softmax", {output.logits}, {{"axis", int64_t{1}}});
  const OnnxValue boxes = by_class(graph, decoded, {1, 0, 2}), all = by_class(graph, probabilities, {1, 0});
  const OnnxValue scores = onnx_large_only(graph, {boxes, all}, limits.min_side);
  const OnnxBoxes groups{boxes, graph.add("Unsqueeze", {scores, graph.ints({1})})};
  const OnnxValue kept =
      by_region(graph, onnx_suppressed(graph, groups, limits.nms_threshold, limits.score_threshold), options.classes);
  const OnnxValue places = graph.add("Gather", {kept, graph.ints({0, 2})}, {{"axis", int64_t{1}}});
  const OnnxValue kept_scores = graph.add("GatherND", {scores, places});
  const OnnxValue best = onnx_best(graph, kept_scores, limits.per_image);
  const OnnxValue classes = graph.add("Gather", {column(graph, kept, 0), best});
  return {graph.add("Gather", {graph.add("GatherND", {boxes, places}), best}), graph.add("Gather", {kept_scores, best}),
          graph.add("Add", {classes, graph.integer(1)})};
}

OnnxValue onnx_masks(OnnxGraph& graph, OnnxLayers& layers, const DetectorOptions& options,
                     const std::vector<OnnxValue>& maps, const OnnxFound& found) {
  const MaskHeadOptions& o = options.mask;
  const std::string predictor = std::string(kHeads) + "mask_predictor.";
  OnnxValue x = onnx_pooled(graph, maps, found.boxes, o.resolution, options.aligned_rois);
  x = tower(layers, x, std::string(kHeads) + "mask_head", o);
  x = layers.relu(layers.conv_transpose(x, predictor + "conv5_mask", {.stride = 2}));
  x = layers.conv(x, predictor + "mask_fcn_logits", {});
  const OnnxValue count = graph.add("Squeeze", {graph.add("Shape", {found.labels})});
  const OnnxValue rows = graph.add("Range", {graph.integer(0), count, graph.integer(1)}), last = graph.ints({1});
  const OnnxValue own =
      graph.add("Concat", {graph.add("Unsqueeze", {rows, last}), graph.add("Unsqueeze", {found.labels, last})},
                {{"axis", int64_t{1}}});
  return graph.add("Sigmoid", {graph.add("GatherND", {x, own})});
}

}  // namespace dtrain::models
