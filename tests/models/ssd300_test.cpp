// SSD300: its default boxes by the published numbers, its loss against double precision, and what it finds.
#include "models/ssd300.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "libdtrain/ops/pointwise.h"
#include "tests/testing.h"

namespace dtrain::models {
namespace {

void expect_box(const std::array<float, 4>& box, const std::array<double, 4>& fractions) {
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(box[i], 300 * fractions[i], 1e-3) << i;
}

TEST(Ssd300, DefaultBoxesAreThoseOfTheReference) {
  const auto boxes = ssd_default_boxes();
  ASSERT_EQ(boxes.size(), static_cast<size_t>(kSsdBoxes));
  // Centre, width and height of the first, of the second of the first row, and of the first of the second shape.
  const auto around = [](double x, double y, double w, double h) {
    return std::array{x - w / 2, y - h / 2, x + w / 2, y + h / 2};
  };
  expect_box(boxes[0], around(4 / 300.0, 4 / 300.0, 0.07, 0.07));
  expect_box(boxes[1], around(12 / 300.0, 4 / 300.0, 0.07, 0.07));
  const double mean = std::sqrt(0.07 * 0.15);
  expect_box(boxes[38 * 38], around(4 / 300.0, 4 / 300.0, mean, mean));
  expect_box(boxes[2 * 38 * 38], around(4 / 300.0, 4 / 300.0, 0.07 * std::sqrt(2), 0.07 / std::sqrt(2)));
  expect_box(boxes[3 * 38 * 38], around(4 / 300.0, 4 / 300.0, 0.07 / std::sqrt(2), 0.07 * std::sqrt(2)));
  // The last map has one cell; wide shapes are cut to the width of the image.
  expect_box(boxes[8728], around(0.5, 0.5, 0.87, 0.87));
  expect_box(boxes[8730], around(0.5, 0.5, 1, 0.87 / std::sqrt(2)));
}

TEST(Ssd300, HeadsSpeakOfEachBoxOnce) {
  std::vector<int32_t> order = ssd_head_order();
  EXPECT_EQ(order[0], 0);
  EXPECT_EQ(order[1], 38 * 38);  // the next shape of the first cell
  EXPECT_EQ(order[4], 1);        // the next cell
  std::ranges::sort(order);
  std::vector<int32_t> all(static_cast<size_t>(kSsdBoxes));
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(order, all);
}

DetectionTruth one_object(Context& context, const std::vector<float>& box, int32_t kind) {
  DetectionTruth truth;
  truth.counts = to_device(context, {1}, std::vector<int32_t>{1});
  truth.boxes = to_device(context, {1, 1, 4}, box);
  truth.classes = to_device(context, {1, 1}, std::vector<int32_t>{kind});
  return truth;
}

// An object that is a default box, where the network says nothing: each of the boxes that count costs log(classes), and
// a matched box costs the distance of its deltas from 0.
TEST(Ssd300, LossOfANetworkThatSaysNothing) {
  for (const auto& context : devices()) {
    ParameterStore store(*context);
    const Ssd300 model(store, {.classes = 3});
    const std::array<float, 4> own = ssd_default_boxes()[8728];
    Tape tape(*context);
    const Ssd300::Output output{tape.variable(context->zeros({1, kSsdBoxes, 4})),
                                tape.variable(context->zeros({1, kSsdBoxes, 3}))};
    const Loss loss = model.loss(tape, output, one_object(*context, {own.begin(), own.end()}, 2));
    double positives = 0, boxes = 0;
    for (const std::array<float, 4>& box : ssd_default_boxes()) {
      const auto at = [&](size_t i) { return double{box[i]}; };
      const double w = at(2) - at(0), h = at(3) - at(1), W = double{own[2]} - own[0], H = double{own[3]} - own[1];
      const double shared_w = std::max(0.0, std::min(at(2), double{own[2]}) - std::max(at(0), double{own[0]}));
      const double shared_h = std::max(0.0, std::min(at(3), double{own[3]}) - std::max(at(1), double{own[1]}));
      if (shared_w * shared_h / (w * h + W * H - shared_w * shared_h) < 0.5) continue;
      ++positives;
      const double deltas[] = {10 * (150 - (at(0) + at(2)) / 2) / w, 10 * (150 - (at(1) + at(3)) / 2) / h,
                               5 * std::log(W / w), 5 * std::log(H / h)};
      for (const double d : deltas) boxes += std::abs(d) < 1 ? d * d / 2 : std::abs(d) - 0.5;
    }
    ASSERT_GT(positives, 1);
    const std::vector<float> class_loss = values_of<float>(*context, loss.metrics[0].sum);
    const std::vector<float> box_loss = values_of<float>(*context, loss.metrics[1].sum);
    EXPECT_NEAR(class_loss[0], 4 * std::log(3.0), 1e-5);
    EXPECT_NEAR(box_loss[0], boxes / positives, 1e-4 * boxes / positives);
    EXPECT_NEAR(values_of<float>(*context, loss.total.value)[0], class_loss[0] + box_loss[0], 1e-4);
  }
}

TEST(Ssd300, FindsWhatItsHeadsSay) {
  for (const auto& context : devices()) {
    ParameterStore store(*context);
    const Ssd300 model(store, {.classes = 3});
    const std::vector<int32_t> order = ssd_head_order();
    const auto head = [&](int32_t number) { return std::ranges::find(order, number) - order.begin(); };
    std::vector<float> logits(static_cast<size_t>(3 * kSsdBoxes), 0.0f);
    for (size_t i = 0; i < logits.size(); i += 3) logits[i] = 10;
    const auto say = [&](int32_t number, size_t kind, float logit) {
      logits[3 * static_cast<size_t>(head(number)) + kind] = logit;
    };
    say(8728, 2, 14);
    say(8729, 2, 13);  // of the same class and nearly the same place
    say(0, 1, 12);
    Tape tape(*context, Mode::eval);
    const Detections found = model.detect(*context, {tape.constant(context->zeros({1, kSsdBoxes, 4})),
                                                     tape.constant(to_device(*context, {1, kSsdBoxes, 3}, logits))});
    ASSERT_EQ(values_of<int32_t>(*context, found.counts), std::vector<int32_t>{2});
    const std::vector<float> boxes = values_of<float>(*context, found.boxes);
    const std::vector<int32_t> classes = values_of<int32_t>(*context, found.classes);
    EXPECT_EQ(classes[0], 2);
    EXPECT_EQ(classes[1], 1);
    const auto all = ssd_default_boxes();
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_NEAR(boxes[i], all[8728][i], 1e-3);
      EXPECT_NEAR(boxes[4 + i], all[0][i], 1e-3);
    }
  }
}

TEST(Ssd300, HasTheNamesAndShapesOfItsParts) {
  for (const auto& context : devices()) {
    ParameterStore store(*context);
    const Ssd300 model(store, {});
    store.allocate(1);
    for (const char* name : {"conv1.weight", "bn1.running_mean", "layer3.0.downsample.0.weight",
                             "additional_blocks.4.2.bias", "loc.5.weight", "conf.0.bias"})
      EXPECT_TRUE(store.find(name) || store.find_buffer(name)) << name;
    EXPECT_EQ(store.find("conf.0.bias")->value.count(), 4 * 81);
    EXPECT_EQ(store.find("loc.1.bias")->value.count(), 6 * 4);
    Tape tape(*context, Mode::eval);
    const Ssd300::Output output = model(tape, tape.constant(context->zeros({1, kSsdSide, kSsdSide, 3})));
    EXPECT_EQ(output.deltas.shape(), (Shape{1, kSsdBoxes, 4}));
    EXPECT_EQ(output.logits.shape(), (Shape{1, kSsdBoxes, 81}));
  }
}

}  // namespace
}  // namespace dtrain::models
