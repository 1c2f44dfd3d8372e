// Parts of a detector as nodes of an ONNX graph, joined in dtrain/models/detection/onnx.h.
#pragma once

#include <vector>

#include "dtrain/models/detection/onnx.h"
#include "models/onnx/layers.h"

namespace dtrain::models {

// The canvas [1, 3, canvas_height, canvas_width] of an image [3, height, width] in [0, 1].
OnnxValue onnx_canvas(OnnxGraph& graph, const OnnxImage& image, const OnnxValue& pixels);
// Feature maps of the pyramid.
std::vector<OnnxValue> onnx_features(OnnxGraph& graph, OnnxLayers& layers, const ResNetOptions& options,
                                     const OnnxValue& canvas);

// Boxes [..., 4] and their scores [...].
struct OnnxBoxes {
  OnnxValue boxes, scores;
};
// Size of the image area; boxes are clipped to it.
struct OnnxBounds {
  int64_t height, width;
};

// decode_boxes(): deltas and anchors [..., 4].
OnnxValue onnx_decoded(OnnxGraph& graph, const BoxCoder& coder, const OnnxValue& deltas, const OnnxValue& anchors,
                       const OnnxBounds& bounds);
// drop_small_boxes(): the scores, lowered below all others for boxes with a side smaller than min_side.
OnnxValue onnx_large_only(OnnxGraph& graph, const OnnxBoxes& found, float min_side);
// Non-maximum suppression of boxes [g, k, 4] with scores [g, 1, k], separately for each of g groups. Returns [m, 3]:
// group, 0 and box. Drops scores up to `least` and scores lowered by onnx_large_only().
OnnxValue onnx_suppressed(OnnxGraph& graph, const OnnxBoxes& found, float threshold, float least);
// Indices of the top `most` of scores [m].
OnnxValue onnx_best(OnnxGraph& graph, const OnnxValue& scores, int64_t most);
inline constexpr float kOnnxLeastScore = -3e38f;

// Region proposals [p, 4] from the maps, by descending score. level_anchors: [t, 4] per level, on the host.
OnnxValue onnx_proposals(OnnxGraph& graph, OnnxLayers& layers, const RpnOptions& options,
                         const std::vector<OnnxValue>& maps, const std::vector<std::vector<float>>& level_anchors,
                         const OnnxBounds& bounds);

// ROI Align as in Detector: regions rois [r, 4] -> [r, channels, resolution, resolution].
OnnxValue onnx_pooled(OnnxGraph& graph, const std::vector<OnnxValue>& maps, const OnnxValue& rois, int resolution,
                      bool aligned);
struct OnnxFound {
  OnnxValue boxes, scores, labels;  // [d, 4], [d], [d] from 1 on
};
OnnxFound onnx_found(OnnxGraph& graph, OnnxLayers& layers, const DetectorOptions& options,
                     const std::vector<OnnxValue>& maps, const OnnxValue& proposals, const OnnxBounds& bounds);
// Mask probabilities [d, side, side].
OnnxValue onnx_masks(OnnxGraph& graph, OnnxLayers& layers, const DetectorOptions& options,
                     const std::vector<OnnxValue>& maps, const OnnxFound& found);
// Pastes masks [d, side, side] into the image, [d, 1, height, width], as data::coco::paste() does; boxes [d, 4] in
// pixels of the image.
OnnxValue onnx_pasted(OnnxGraph& graph, const OnnxImage& image, const OnnxValue& cells, int64_t side,
                      const OnnxValue& boxes);

}  // namespace dtrain::models
