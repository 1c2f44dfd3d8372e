// Preprocessing of a detector's ONNX graph from image to canvas, and pasting of masks into the image.
#include "models/detection/onnx_parts.h"

namespace dtrain::models {
namespace {

constexpr int64_t kDouble = static_cast<int64_t>(OnnxType::f64), kFloat = static_cast<int64_t>(OnnxType::f32);
constexpr int64_t kInteger = static_cast<int64_t>(OnnxType::i64);

// Filters one axis (1: rows, 2: columns) of x [3, h, w]. The engine rounds the first product and each fused
// multiply-add. In double precision products are exact, so that a single rounding to float gives the same result.
OnnxValue filtered(OnnxGraph& graph, const OnnxValue& x, const Filter<float>& filter, int64_t axis) {
  const int64_t count = filter.count();
  const OnnxValue exact = graph.add("Cast", {x}, {{"to", kDouble}});
  OnnxValue sum;
  for (int tap = 0; tap < filter.taps; ++tap) {
    std::vector<int64_t> from;
    std::vector<float> weights;
    for (int64_t i = 0; i < count; ++i) {
      from.push_back(filter.first[static_cast<size_t>(i)] + tap);
      weights.push_back(filter.weights[static_cast<size_t>(i * filter.taps + tap)]);
    }
    const OnnxValue weight = graph.floats(weights, axis == 1 ? Shape{count, 1} : Shape{count});
    const OnnxValue product = graph.add("Mul", {graph.add("Gather", {exact, graph.ints(from)}, {{"axis", axis}}),
                                                graph.add("Cast", {weight}, {{"to", kDouble}})});
    const OnnxValue total =
        tap == 0 ? product : graph.add("Add", {product, graph.add("Cast", {sum}, {{"to", kDouble}})});
    sum = graph.add("Cast", {total}, {{"to", kFloat}});
  }
  return sum;
}

// Bilinear weights [d, pixels, side] of the mask cells for each pixel along an axis; boxes span low to high [d, 1].
// Weights fall to 0 beyond the outer cells, as with a border of zeros one cell wide.
OnnxValue cell_weights(OnnxGraph& graph, const OnnxValue& low, const OnnxValue& high, int64_t side, int64_t pixels,
                       bool whole_pixels) {
  const auto op = [&graph](const char* name, const OnnxValue& a, const OnnxValue& b) {
    return graph.add(name, {a, b});
  };
  const auto number = [&graph](double value) { return graph.scalar(static_cast<float>(value)); };
  std::vector<float> centres, cells;
  for (int64_t i = 0; i < pixels; ++i) centres.push_back(static_cast<float>(i) + 0.5f);
  for (int64_t i = 0; i < side; ++i) cells.push_back(static_cast<float>(i));
  const OnnxValue centre = graph.floats(centres, {1, pixels});
  const double wide = static_cast<double>(side) + 2;
  OnnxValue place;  // 0 at the centre of the first cell
  if (whole_pixels) {
    const OnnxValue middle = op("Mul", op("Add", low, high), number(0.5));
    const OnnxValue half = op("Mul", op("Sub", high, low), number(0.5 * wide / static_cast<double>(side)));
    const auto truncated = [&](const char* name) {
      return graph.add("Cast", {graph.add("Cast", {op(name, middle, half)}, {{"to", kInteger}})}, {{"to", kFloat}});
    };
    const OnnxValue first = truncated("Sub"), last = truncated("Add");
    const OnnxValue size = op("Max", op("Add", op("Sub", last, first), number(1)), number(1));
    place = op("Sub", op("Div", op("Mul", op("Sub", centre, first), number(wide)), size), number(1.5));
  } else {
    const OnnxValue cell = op("Div", op("Sub", high, low), number(static_cast<double>(side)));
    place = op("Sub", op("Div", op("Sub", centre, low), cell), number(0.5));
  }
  const OnnxValue apart = op("Sub", op("Unsqueeze", place, graph.ints({2})), graph.floats(cells, {side}));
  return graph.add("Relu", {op("Sub", number(1), graph.add("Abs", {apart}))});
}

}  // namespace

OnnxValue onnx_canvas(OnnxGraph& graph, const OnnxImage& image, const OnnxValue& pixels) {
  OnnxValue x = graph.add("Mul", {pixels, graph.scalar(255)});
  x = graph.add("Round", {x});
  if (image.columns.taps > 0) x = filtered(graph, x, image.columns, 2);
  if (image.rows.taps > 0) x = filtered(graph, x, image.rows, 1);
  if (image.rounds_pixels && (image.columns.taps > 0 || image.rows.taps > 0)) x = graph.add("Round", {x});
  std::vector<float> scale;
  for (const float deviation : image.deviation) scale.push_back(1 / deviation);
  x = graph.add("Sub", {x, graph.floats(image.mean, {3, 1, 1})});
  x = graph.add("Mul", {x, graph.floats(scale, {3, 1, 1})});
  x = graph.add("Pad", {x, graph.ints({0, 0, 0, 0, image.canvas_height - image.resized_height,
                                       image.canvas_width - image.resized_width})});
  return graph.add("Unsqueeze", {x, graph.ints({0})});
}

OnnxValue onnx_pasted(OnnxGraph& graph, const OnnxImage& image, const OnnxValue& cells, int64_t side,
                      const OnnxValue& boxes) {
  const auto corners = graph.add("Split", 4, {boxes}, {{"axis", int64_t{1}}});
  const OnnxValue columns = cell_weights(graph, corners[0], corners[2], side, image.width, image.whole_pixels);
  const OnnxValue rows = cell_weights(graph, corners[1], corners[3], side, image.height, image.whole_pixels);
  const OnnxValue turned = graph.add("Transpose", {columns}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
  const OnnxValue pasted = graph.add("MatMul", {graph.add("MatMul", {rows, cells}), turned});
  return graph.add("Unsqueeze", {pasted, graph.ints({1})});
}

}  // namespace dtrain::models
