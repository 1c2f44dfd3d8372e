#include "dtrain/models/ssd300.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "dtrain/ops/concat_channels.h"
#include "dtrain/ops/masked_losses.h"
#include "dtrain/ops/match_boxes.h"
#include "dtrain/ops/mined_cross_entropy.h"
#include "dtrain/ops/pointwise.h"
#include "dtrain/ops/scalar_loss.h"
#include "dtrain/ops/top_k.h"
#include "libdtrain/ops/anchor_targets.h"
#include "libdtrain/ops/candidates.h"
#include "libdtrain/ops/claim_boxes.h"
#include "libdtrain/ops/gather_rows.h"
#include "models/detection/rows.h"
#include "models/initializers.h"

namespace dtrain::models {
namespace {

// Feature map with its default boxes: squares of `scale` and of the geometric mean with the next scale, and two
// rectangles per aspect ratio with the area of the first square. Lengths in pixels.
struct Map {
  int64_t side;
  double step;
  double scale, next_scale;
  std::vector<double> ratios;
  int64_t channels;  // of the feature map

  int64_t shapes() const { return 2 + 2 * static_cast<int64_t>(ratios.size()); }
};

const std::vector<Map>& maps() {
  static const std::vector<Map> all = {{38, 8, 21, 45, {2}, 256},      {19, 16, 45, 99, {2, 3}, 512},
                                       {10, 32, 99, 153, {2, 3}, 512}, {5, 64, 153, 207, {2, 3}, 256},
                                       {3, 100, 207, 261, {2}, 256},   {1, 300, 261, 315, {2}, 256}};
  return all;
}

// Widths and heights.
std::vector<std::array<double, 2>> shapes_of(const Map& map) {
  const double mean = std::sqrt(map.scale * map.next_scale);
  std::vector<std::array<double, 2>> shapes = {{map.scale, map.scale}, {mean, mean}};
  for (const double ratio : map.ratios) {
    const double longer = map.scale * std::sqrt(ratio), shorter = map.scale / std::sqrt(ratio);
    shapes.push_back({longer, shorter});
    shapes.push_back({shorter, longer});
  }
  return shapes;
}

// Extra layers between two maps: 1x1 convolution to `hidden` channels and 3x3 convolution to `out`.
struct Step {
  int64_t in, hidden, out;
  int stride;
  Padding padding;
};

std::array<Conv2d, 2> make_step(ParameterStore& store, const std::string& path, const Step& step) {
  const auto glorot = [](int64_t kernel, int64_t in, int64_t out) {
    return glorot_uniform(kernel * kernel * in, kernel * kernel * out);
  };
  return {Conv2d(store, path + ".0", step.in, step.hidden, 1, {.bias = true, .init = glorot(1, step.in, step.hidden)}),
          Conv2d(store, path + ".2", step.hidden, step.out, 3,
                 {.conv = {.stride = step.stride, .padding = step.padding},
                  .bias = true,
                  .init = glorot(3, step.hidden, step.out)})};
}

std::vector<std::array<Conv2d, 2>> make_steps(ParameterStore& store) {
  // TensorFlow's SAME: the odd row and column of padding at the bottom and right.
  const Padding even(0, 1, 0, 1);
  const std::vector<Step> steps = {{256, 256, 512, 2, even},
                                   {512, 256, 512, 2, 1},
                                   {512, 128, 256, 2, even},
                                   {256, 128, 256, 1, 0},
                                   {256, 128, 256, 1, 0}};
  std::vector<std::array<Conv2d, 2>> made;
  for (size_t i = 0; i < steps.size(); ++i)
    made.push_back(make_step(store, "additional_blocks." + std::to_string(i), steps[i]));
  return made;
}

// 3x3 convolution per map with `numbers` outputs per default box.
std::vector<Conv2d> make_heads(ParameterStore& store, const std::string& path, int64_t numbers) {
  std::vector<Conv2d> heads;
  for (size_t i = 0; i < maps().size(); ++i) {
    const int64_t in = maps()[i].channels, out = maps()[i].shapes() * numbers;
    heads.emplace_back(store, path + "." + std::to_string(i), in, out, 3,
                       Conv2d::Options{.conv = {.padding = 1}, .bias = true, .init = glorot_uniform(9 * in, 9 * out)});
  }
  return heads;
}

// [1, classes * per_class, 1]: class of each place, ordered class by class.
Tensor classes_of_places(Context& context, const SsdOptions& options) {
  std::vector<int32_t> classes;
  for (int64_t kind = 0; kind < options.classes; ++kind)
    classes.insert(classes.end(), static_cast<size_t>(options.per_class), static_cast<int32_t>(kind));
  const Tensor result = context.empty({1, options.classes * options.per_class, 1}, DType::i32);
  context.upload(classes.data(), result);
  return result;
}

Tensor boxes_of_heads(Context& context) {
  const std::vector<std::array<float, 4>> all = ssd_default_boxes();
  std::vector<float> corners;
  for (const int32_t number : ssd_head_order())
    corners.insert(corners.end(), all[static_cast<size_t>(number)].begin(), all[static_cast<size_t>(number)].end());
  const Tensor boxes = context.empty({kSsdBoxes, 4});
  context.upload(corners.data(), boxes);
  return boxes;
}

// Concatenates the head outputs of all maps: [n, boxes, width].
Var joined(Tape& tape, const std::vector<Var>& outputs, int64_t width) {
  std::vector<Var> flat;
  for (const Var& output : outputs) flat.push_back(flatten(tape, output));
  return reshape(tape, concat_channels(tape, flat), {outputs.front().shape()[0], kSsdBoxes, width});
}

const SsdOptions& checked(const SsdOptions& options) {
  DT_CHECK(options.classes >= 2, "SSD300: ", options.classes, " classes, expected at least 2, background included");
  DT_CHECK(options.per_class >= 1 && options.per_image >= 1, "SSD300: ", options.per_class, " boxes per class and ",
           options.per_image, " per image, expected 1 at least");
  return options;
}

// Weights 10 for centres and 5 for sizes: the variances 0.1 and 0.2 of the MLPerf reference. The reference does not
// clip the exponential; here the clip only prevents overflow of f32.
constexpr BoxCoder kCoder{.wx = 10, .wy = 10, .ww = 5, .wh = 5, .clip = 80};

}  // namespace

std::vector<std::array<float, 4>> ssd_default_boxes() {
  const auto side = static_cast<double>(kSsdSide);
  const auto clamped = [&](double x) { return std::clamp(x, 0.0, side); };
  std::vector<std::array<float, 4>> boxes;
  for (const Map& map : maps())
    for (const auto& [width, height] : shapes_of(map))
      for (int64_t row = 0; row < map.side; ++row)
        for (int64_t column = 0; column < map.side; ++column) {
          const double x = clamped((static_cast<double>(column) + 0.5) * map.step);
          const double y = clamped((static_cast<double>(row) + 0.5) * map.step);
          const double w = clamped(width) / 2, h = clamped(height) / 2;
          boxes.push_back({static_cast<float>(x - w), static_cast<float>(y - h), static_cast<float>(x + w),
                           static_cast<float>(y + h)});
        }
  return boxes;
}

std::vector<int32_t> ssd_head_order() {
  std::vector<int32_t> order;
  int64_t first = 0;
  for (const Map& map : maps()) {
    const int64_t cells = map.side * map.side;
    for (int64_t cell = 0; cell < cells; ++cell)
      for (int64_t shape = 0; shape < map.shapes(); ++shape)
        order.push_back(static_cast<int32_t>(first + shape * cells + cell));
    first += map.shapes() * cells;
  }
  return order;
}

ResNetOptions ssd_backbone(const SsdOptions& options) {
  DT_CHECK(options.blocks.size() == 3, "SSD300: a backbone of ", options.blocks.size(), " stages, expected 3");
  return {.blocks = options.blocks,
          .strides = {1, 2, 1},
          .pool_padding = StridedPadding::after,
          .init = ResNetInit::tensorflow,
          .batch_norm = options.batch_norm};
}

Ssd300::Ssd300(ParameterStore& store, const SsdOptions& options)
    : options_(checked(options)),
      backbone_(store, trace_, ssd_backbone(options), 0),
      additional_(make_steps(store)),
      loc_(make_heads(store, "loc", 4)),
      conf_(make_heads(store, "conf", options.classes)),
      boxes_(boxes_of_heads(store.context())),
      place_classes_(classes_of_places(store.context(), options)) {}

Ssd300::Output Ssd300::operator()(Tape& tape, const Var& images) const {
  DT_CHECK(images.shape().rank() == 4 && images.shape()[1] == kSsdSide && images.shape()[2] == kSsdSide,
           "SSD300: images ", images.shape(), ", expected [n, 300, 300, c]");
  std::vector<Var> features = {backbone_.features(tape, images).back()};
  for (const std::array<Conv2d, 2>& step : additional_)
    features.push_back(relu(tape, step[1](tape, relu(tape, step[0](tape, features.back())))));
  std::vector<Var> deltas, logits;
  for (size_t i = 0; i < features.size(); ++i) {
    deltas.push_back(loc_[i](tape, features[i]));
    logits.push_back(conf_[i](tape, features[i]));
  }
  return {joined(tape, deltas, 4), joined(tape, logits, options_.classes)};
}

Loss Ssd300::loss(Tape& tape, const Var& images, const DetectionTruth& truth) const {
  return loss(tape, (*this)(tape, images), truth);
}

Loss Ssd300::loss(Tape& tape, const Output& output, const DetectionTruth& truth) const {
  Context& context = tape.context();
  const int64_t n = truth.boxes.dim(0), t = kSsdBoxes;
  const Tensor matched = context.empty({n, t}, DType::i32);
  match_boxes(context, boxes_, {}, truth.boxes, truth.counts, {},
              {.positive = options_.match_threshold, .negative = options_.match_threshold}, matched);
  claim_boxes(context, boxes_, truth.boxes, truth.counts, matched);
  const Tensor labels = context.empty({n, t}, DType::i32);
  gather_rows(context, truth.classes, matched, labels);  // negative index: background, class 0
  const AnchorTargets targets{context.empty({n, t}), context.empty({n, t}), context.empty({n, t}),
                              context.empty({n, t, 4}), context.empty({1})};
  anchor_targets(context, matched, truth.boxes, boxes_, kCoder, targets);
  const MinedCrossEntropy classes = mined_cross_entropy(tape, output.logits, labels, options_.negatives_per_positive);
  const Var deltas = reshape(tape, output.deltas, {n * t, 4});
  const Var boxes = smooth_l1(tape, deltas, targets.deltas.view({n * t, 4}), classes.positives.view({n * t}), 1,
                              {static_cast<float>(n)});
  return {weighted_sum(tape, {classes.loss, boxes}, {1, 1}),
          {{"class_loss", classes.loss.value}, {"box_loss", boxes.value}}};
}

Detections Ssd300::detect(Tape& tape, const Var& images) const {
  DT_CHECK(!tape.training(), "SSD300: detect: the tape records; expected Mode::eval");
  return detect(tape.context(), (*this)(tape, images));
}

Detections Ssd300::detect(Context& context, const Output& output) const {
  const int64_t n = output.logits.shape()[0], c = options_.classes, k = options_.per_class;
  const Tensor scores = context.empty({n, c, kSsdBoxes});
  scores_by_class(context, softmax(context, output.logits.value.view({n * kSsdBoxes, c})), options_.score_threshold,
                  scores);
  const Tensor best = context.empty({n * c, k}), places = context.empty({n * c, k}, DType::i32);
  top_k(context, scores.view({n * c, kSsdBoxes}), {}, best, places);
  const Tensor rows = places.view({n, c * k}), boxes = context.empty({n * c, k, 4});
  decode_boxes(context, rows_of(context, output.deltas.value, rows).view({n * c * k, 1, 4}),
               rows_of(context, boxes_.view({1, kSsdBoxes, 4}), rows).view({n * c * k, 4}), {}, kCoder,
               boxes.view({n * c * k, 1, 4}));
  const Tensor kept = context.empty({n * c, k}, DType::i32), counts = context.empty({n * c}, DType::i32);
  nms(context, boxes, best, {}, {.threshold = options_.nms_threshold}, kept, counts);
  return best_of_all_classes(context, rows_of(context, boxes, kept).view({n, c * k, 4}),
                             rows_of(context, best.view({n * c, k, 1}), kept).view({n, c * k}));
}

Detections Ssd300::best_of_all_classes(Context& context, const Tensor& boxes, const Tensor& scores) const {
  const int64_t n = boxes.dim(0), all = boxes.dim(1), d = options_.per_image;
  drop_small_boxes(context, boxes.view({n * all, 4}), 0, scores.view({n * all}));  // padding is zeros
  const Tensor best = context.empty({n, d}), places = context.empty({n, d}, DType::i32);
  top_k(context, scores, {}, best, places);
  const Tensor best_boxes = rows_of(context, boxes, places);
  const Tensor classes = rows_of(context, place_classes_, places).view({n, d});
  // Boxes do not overlap any more; this call only counts them.
  const Tensor kept = context.empty({n, d}, DType::i32), counts = context.empty({n}, DType::i32);
  nms(context, best_boxes, best, classes, {.threshold = options_.nms_threshold}, kept, counts);
  return {rows_of(context, best_boxes, kept), rows_of(context, best.view({n, d, 1}), kept).view({n, d}),
          rows_of(context, classes.view({n, d, 1}), kept).view({n, d}), counts};
}

}  // namespace dtrain::models
