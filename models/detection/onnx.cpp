#include "dtrain/models/detection/onnx.h"

#include "models/detection/onnx_parts.h"

namespace dtrain::models {
namespace {

constexpr int64_t kMultiple = 32;

void require_sound(const OnnxImage& image) {
  DT_CHECK(image.height > 0 && image.width > 0 && image.canvas_height % kMultiple == 0 &&
               image.canvas_width % kMultiple == 0 && image.resized_height > 0 && image.resized_width > 0 &&
               image.resized_height <= image.canvas_height && image.resized_width <= image.canvas_width,
           "ONNX: an image of ", image.height, " x ", image.width, ", resized to ", image.resized_height, " x ",
           image.resized_width, ", on a canvas of ", image.canvas_height, " x ", image.canvas_width);
}

std::vector<std::vector<float>> anchors_of(Context& context, const Canvas& canvas) {
  std::vector<std::vector<float>> levels;
  for (const Tensor& level : canvas.level_anchors) {
    levels.emplace_back(static_cast<size_t>(level.count()));
    context.download(level, levels.back().data(), "exporting anchors");
  }
  return levels;
}

OnnxValue in_image(OnnxGraph& graph, const OnnxImage& image, const OnnxValue& boxes) {
  const float x = static_cast<float>(image.width) / static_cast<float>(image.resized_width);
  const float y = static_cast<float>(image.height) / static_cast<float>(image.resized_height);
  const float scale[] = {x, y, x, y};
  return graph.add("Mul", {boxes, graph.floats(scale, {4})});
}

void require_known_form(const DetectorOptions& options) {
  const auto refuse = [](bool refused, const char* what) {
    if (refused) throw Error(Fault::config, concat("ONNX: ", what, " cannot be exported"));
  };
  refuse(!options.pyramid, "a detector without a pyramid");
  refuse(options.cascade, "a cascade");
  refuse(options.pyramid_norm, "a pyramid with group norm");
  refuse(options.backbone.norm != ConvNorm::batch, "a backbone without batch norm");
}

}  // namespace

void export_onnx(const ParameterStore& store, const Detector& detector, const OnnxImage& image,
                 const std::string& path) {
  require_sound(image);
  const DetectorOptions& options = detector.options();
  require_known_form(options);
  const OnnxBounds bounds{image.resized_height, image.resized_width};
  OnnxGraph graph("detector");
  OnnxLayers layers(graph, store);
  const OnnxValue pixels =
      graph.input("image", OnnxType::f32, {int64_t{3}, image.height, image.width}, "red, green and blue from 0 to 1");
  const OnnxValue canvas = onnx_canvas(graph, image, pixels);
  const std::vector<OnnxValue> maps = onnx_features(graph, layers, options.backbone, canvas);
  const auto anchors =
      anchors_of(store.context(), detector.canvas(store.context(), image.canvas_height, image.canvas_width));
  const OnnxValue proposals = onnx_proposals(graph, layers, options.rpn, maps, anchors, bounds);
  const OnnxFound found = onnx_found(graph, layers, options, maps, proposals, bounds);
  const OnnxValue boxes = in_image(graph, image, found.boxes);
  const OnnxDim some = "detections";
  graph.output(boxes, "boxes", OnnxType::f32, {some, int64_t{4}}, "x1, y1, x2 and y2 in pixels of the image");
  graph.output(found.scores, "scores", OnnxType::f32, {some}, "in descending order");
  graph.output(found.labels, "labels", OnnxType::i64, {some}, "classes, from 1 on");
  if (options.masks) {
    const OnnxValue cells = onnx_masks(graph, layers, options, maps, found);
    graph.output(onnx_pasted(graph, image, cells, 2 * options.mask.resolution, boxes), "masks", OnnxType::f32,
                 {some, int64_t{1}, image.height, image.width}, "the probability of each pixel of the image");
  }
  layers.require_all_used();
  graph.write(path);
}

}  // namespace dtrain::models
