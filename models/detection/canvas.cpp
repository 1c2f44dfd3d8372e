#include "dtrain/models/detection/canvas.h"

namespace dtrain::models {
namespace {

Tensor uploaded(Context& context, const Shape& shape, const std::vector<float>& values) {
  const Tensor tensor = context.empty(shape);
  context.upload(values.data(), tensor);
  return tensor;
}

}  // namespace

Canvas make_canvas(Context& context, const RpnOptions& options, const std::vector<int>& strides, int64_t height,
                   int64_t width) {
  DT_CHECK(options.single_map ? strides.size() == 1 : options.sizes.size() == strides.size(),
           "anchors: ", options.sizes.size(), " sizes for ", strides.size(), " levels");
  Canvas canvas{.height = height, .width = width};
  std::vector<float> all;
  for (size_t level = 0; level < strides.size(); ++level) {
    AnchorOptions anchors = options.anchors;
    anchors.sizes = options.single_map ? options.sizes : std::vector{options.sizes[level]};
    const int64_t rows = (height + strides[level] - 1) / strides[level];
    const int64_t columns = (width + strides[level] - 1) / strides[level];
    anchors.stride_h = static_cast<float>(options.strides_of_maps ? height / rows : strides[level]);
    anchors.stride_w = static_cast<float>(options.strides_of_maps ? width / columns : strides[level]);
    const std::vector<float> boxes = make_anchors(anchors, rows, columns);
    const auto count = static_cast<int64_t>(boxes.size() / 4);
    canvas.level_anchors.push_back(uploaded(context, {1, count, 4}, boxes));
    all.insert(all.end(), boxes.begin(), boxes.end());
  }
  canvas.anchors = uploaded(context, {static_cast<int64_t>(all.size() / 4), 4}, all);
  return canvas;
}

}  // namespace dtrain::models
