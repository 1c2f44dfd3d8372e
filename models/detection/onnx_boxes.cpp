// Boxes in a detector's ONNX graph: decoding, non-maximum suppression, proposals.
#include <algorithm>

#include "models/detection/onnx_parts.h"

namespace dtrain::models {
namespace {

using Ints = std::vector<int64_t>;

// [..., 4] -> x1, y1 and x2, y2, [..., 2] each.
std::vector<OnnxValue> corners_of(OnnxGraph& graph, const OnnxValue& boxes) {
  return graph.add("Split", 2, {boxes}, {{"axis", int64_t{-1}}});
}

// [1, a * k, h, w] -> [h * w * a, k], or [h * w * a] where k is 1.
OnnxValue cell_by_cell(OnnxGraph& graph, const OnnxValue& map, int64_t k) {
  const OnnxValue last = graph.add("Transpose", {map}, {{"perm", Ints{0, 2, 3, 1}}});
  return graph.add("Reshape", {last, graph.ints(k == 1 ? Ints{-1} : Ints{-1, k})});
}

// best_of_level() of models/detection/rpn.cpp, followed by removal of small boxes and non-maximum suppression.
OnnxBoxes kept_of_level(OnnxGraph& graph, OnnxLayers& layers, const RpnOptions& options, const OnnxValue& map,
                        const std::vector<float>& anchors, const OnnxBounds& bounds) {
  const OnnxValue hidden = layers.relu(layers.conv(map, "rpn.head.conv.0.0", {.padding = 1}));
  const OnnxValue logits = cell_by_cell(graph, layers.conv(hidden, "rpn.head.cls_logits", {}), 1);
  const OnnxValue deltas = cell_by_cell(graph, layers.conv(hidden, "rpn.head.bbox_pred", {}), 4);
  const auto count = static_cast<int64_t>(anchors.size() / 4);
  const int64_t k = std::min<int64_t>(options.evaluation.per_level, count);
  const auto best = graph.add("TopK", 2, {logits, graph.ints({k})});
  const OnnxValue references = graph.add("Gather", {graph.floats(anchors, {count, 4}), best[1]});
  const OnnxValue boxes =
      onnx_decoded(graph, options.coder, graph.add("Gather", {deltas, best[1]}), references, bounds);
  const OnnxValue scores = onnx_large_only(graph, {boxes, best[0]}, options.min_side);
  const OnnxBoxes one_group{graph.add("Unsqueeze", {boxes, graph.ints({0})}),
                            graph.add("Unsqueeze", {scores, graph.ints({0, 1})})};
  const OnnxValue kept = onnx_suppressed(graph, one_group, options.nms_threshold, kOnnxLeastScore);
  const OnnxValue rows = graph.add("Gather", {kept, graph.integer(2)}, {{"axis", int64_t{1}}});
  return {graph.add("Gather", {boxes, rows}), graph.add("Gather", {scores, rows})};
}

}  // namespace

OnnxValue onnx_decoded(OnnxGraph& graph, const BoxCoder& coder, const OnnxValue& deltas, const OnnxValue& anchors,
                       const OnnxBounds& bounds) {
  const auto op = [&graph](const char* name, const OnnxValue& a, const OnnxValue& b) {
    return graph.add(name, {a, b});
  };
  const float margin = coder.plus_one ? 1.0f : 0.0f, weights[] = {coder.wx, coder.wy, coder.ww, coder.wh};
  const auto delta = corners_of(graph, op("Div", deltas, graph.floats(weights, {4})));
  const auto corner = corners_of(graph, anchors);
  const OnnxValue size = op("Add", op("Sub", corner[1], corner[0]), graph.scalar(margin));
  const OnnxValue middle = op("Add", corner[0], op("Mul", size, graph.scalar(0.5f)));
  const OnnxValue centre = op("Add", op("Mul", delta[0], size), middle);
  const OnnxValue growth = graph.add("Exp", {op("Min", delta[1], graph.scalar(coder.clip))});
  const OnnxValue half = op("Mul", op("Mul", growth, size), graph.scalar(0.5f));
  const OnnxValue low = op("Sub", centre, half);
  const OnnxValue high = op("Sub", op("Add", centre, half), graph.scalar(margin));
  const OnnxValue boxes = graph.add("Concat", {low, high}, {{"axis", int64_t{-1}}});
  const float right = static_cast<float>(bounds.width) - margin, bottom = static_cast<float>(bounds.height) - margin;
  const float last[] = {right, bottom, right, bottom};
  return op("Min", op("Max", boxes, graph.scalar(0)), graph.floats(last, {4}));
}

OnnxValue onnx_large_only(OnnxGraph& graph, const OnnxBoxes& found, float min_side) {
  const auto corner = corners_of(graph, found.boxes);
  const OnnxValue side = graph.add("ReduceMin", {graph.add("Sub", {corner[1], corner[0]})},
                                   {{"axes", Ints{-1}}, {"keepdims", int64_t{0}}});
  const OnnxValue large = graph.add("And", {graph.add("Greater", {side, graph.scalar(0)}),
                                            graph.add("GreaterOrEqual", {side, graph.scalar(min_side)})});
  return graph.add("Where", {large, found.scores, graph.scalar(kOnnxLeastScore)});
}

OnnxValue onnx_suppressed(OnnxGraph& graph, const OnnxBoxes& found, float threshold, float least) {
  constexpr int64_t kAll = int64_t{1} << 30;
  return graph.add("NonMaxSuppression",
                   {found.boxes, found.scores, graph.integer(kAll), graph.scalar(threshold), graph.scalar(least)});
}

OnnxValue onnx_best(OnnxGraph& graph, const OnnxValue& scores, int64_t most) {
  const OnnxValue count = graph.add("Min", {graph.add("Shape", {scores}), graph.ints({most})});
  return graph.add("TopK", 2, {scores, count})[1];
}

OnnxValue onnx_proposals(OnnxGraph& graph, OnnxLayers& layers, const RpnOptions& options,
                         const std::vector<OnnxValue>& maps, const std::vector<std::vector<float>>& level_anchors,
                         const OnnxBounds& bounds) {
  std::vector<OnnxValue> boxes, scores;
  for (size_t level = 0; level < maps.size(); ++level) {
    const OnnxBoxes kept = kept_of_level(graph, layers, options, maps[level], level_anchors[level], bounds);
    boxes.push_back(kept.boxes);
    scores.push_back(kept.scores);
  }
  const OnnxValue all = graph.add("Concat", boxes, {{"axis", int64_t{0}}});
  const OnnxValue best =
      onnx_best(graph, graph.add("Concat", scores, {{"axis", int64_t{0}}}), options.evaluation.total);
  return graph.add("Gather", {all, best});
}

}  // namespace dtrain::models
