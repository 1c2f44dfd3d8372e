// The parts of a detector as nodes of an ONNX graph; models/detection/onnx.h joins them.
#pragma once

#include <vector>

#include "models/detection/onnx.h"
#include "models/onnx/layers.h"

namespace dtrain::models {

// The canvas [1, 3, canvas_height, canvas_width] of an image [3, height, width] from 0 to 1.
OnnxValue onnx_canvas(OnnxGraph& graph, const OnnxImage& image, const OnnxValue& pixels);
// The maps of the pyramid, of a canvas.
std::vector<OnnxValue> onnx_features(OnnxGraph& graph, OnnxLayers& layers, const ResNetOptions& options,
                                     const OnnxValue& canvas);

// Boxes [..., 4] and scores of as many.
struct OnnxBoxes {
  OnnxValue boxes, scores;
};
// What lies in the image is height by width.
struct OnnxBounds {
  int64_t height, width;
};

// As decode_boxes(): deltas and anchors [..., 4].
OnnxValue onnx_decoded(OnnxGraph& graph, const BoxCoder& coder, const OnnxValue& deltas, const OnnxValue& anchors,
                       const OnnxBounds& bounds);
// The scores, or less than all others where a side of the box is too small, as drop_small_boxes().
OnnxValue onnx_large_only(OnnxGraph& graph, const OnnxBoxes& found, float min_side);
// What is kept of boxes [g, k, 4] with scores [g, 1, k], each of g groups by itself: [m, 3], group, 0 and box. Scores
// up to `least` are dropped, as are those that onnx_large_only() has lowered.
OnnxValue onnx_suppressed(OnnxGraph& graph, const OnnxBoxes& found, float threshold, float least);
// The best `most` rows by scores [m]: their indices.
OnnxValue onnx_best(OnnxGraph& graph, const OnnxValue& scores, int64_t most);
inline constexpr float kOnnxLeastScore = -3e38f;

// The proposals [p, 4] of maps, by descending score. level_anchors: [t, 4] of each level, on the host.
OnnxValue onnx_proposals(OnnxGraph& graph, OnnxLayers& layers, const RpnOptions& options,
                         const std::vector<OnnxValue>& maps, const std::vector<std::vector<float>>& level_anchors,
                         const OnnxBounds& bounds);

// As Detector's own: regions rois [r, 4] of the maps, [r, channels, resolution, resolution].
OnnxValue onnx_pooled(OnnxGraph& graph, const std::vector<OnnxValue>& maps, const OnnxValue& rois, int resolution,
                      bool aligned);
struct OnnxFound {
  OnnxValue boxes, scores, labels;  // [d, 4], [d], [d] from 1 on
};
OnnxFound onnx_found(OnnxGraph& graph, OnnxLayers& layers, const DetectorOptions& options,
                     const std::vector<OnnxValue>& maps, const OnnxValue& proposals, const OnnxBounds& bounds);
// The probabilities of the cells of masks, [d, side, side].
OnnxValue onnx_masks(OnnxGraph& graph, OnnxLayers& layers, const DetectorOptions& options,
                     const std::vector<OnnxValue>& maps, const OnnxFound& found);
// Cells [d, side, side] in the image, [d, 1, height, width], as data::coco::paste() has it; boxes [d, 4] in its pixels.
OnnxValue onnx_pasted(OnnxGraph& graph, const OnnxImage& image, const OnnxValue& cells, int64_t side,
                      const OnnxValue& boxes);

}  // namespace dtrain::models
