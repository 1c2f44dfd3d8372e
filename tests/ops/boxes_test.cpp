// Box deltas and IoUs against their formulas in double precision.
#include "dtrain/ops/boxes.h"

#include <cmath>

#include "tests/testing.h"

namespace dtrain {
namespace {

constexpr BoxCoder kWeighted{.wx = 10, .wy = 10, .ww = 5, .wh = 5};
constexpr BoxCoder kPlusOne{.wx = 2, .wy = 4, .ww = 8, .wh = 1, .plus_one = true};

// Boxes [n, 4] of sizes from 2 to 60 with corners between 0 and 160.
Array random_corners(int64_t n, uint64_t seed) {
  const Array first = random_array({n, 2}, seed, 0, 100), size = random_array({n, 2}, seed + 1, 2, 60);
  Array boxes({n, 4});
  for (int64_t i = 0; i < n; ++i)
    for (int64_t c = 0; c < 2; ++c) {
      boxes[4 * i + c] = first[2 * i + c];
      boxes[4 * i + 2 + c] = static_cast<float>(first[2 * i + c] + size[2 * i + c]);
    }
  return boxes;
}

Array naive_encode(const Array& boxes, const Array& anchors, const BoxCoder& coder) {
  const double margin = coder.plus_one ? 1 : 0, weights[] = {coder.wx, coder.wy, coder.ww, coder.wh};
  Array deltas(boxes.shape);
  for (int64_t i = 0; i < boxes.dim(0); ++i)
    for (int64_t c = 0; c < 2; ++c) {
      const int64_t low = 4 * i + c, high = low + 2;
      const double size = boxes[high] - boxes[low] + margin, from = anchors[high] - anchors[low] + margin;
      const double centre = boxes[low] + size / 2, origin = anchors[low] + from / 2;
      deltas[low] = weights[c] * (centre - origin) / from;
      deltas[high] = weights[c + 2] * std::log(size / from);
    }
  return deltas;
}

// limits [n, 2] or empty.
Array naive_decode(const Array& deltas, const Array& anchors, const Array& limits, const BoxCoder& coder) {
  const double margin = coder.plus_one ? 1 : 0, weights[] = {coder.wx, coder.wy, coder.ww, coder.wh};
  Array boxes(deltas.shape);
  for (int64_t i = 0; i < deltas.dim(0) * deltas.dim(1); ++i)
    for (int64_t c = 0; c < 2; ++c) {
      const int64_t row = i / deltas.dim(1), low = 4 * row + c;
      const double from = anchors[low + 2] - anchors[low] + margin, origin = anchors[low] + from / 2;
      const double centre = origin + deltas[4 * i + c] / weights[c] * from;
      const double size = from * std::exp(std::min<double>(deltas[4 * i + c + 2] / weights[c + 2], coder.clip));
      boxes[4 * i + c] = centre - size / 2;
      boxes[4 * i + c + 2] = centre + size / 2 - margin;
      if (limits.values.empty()) continue;
      for (const int64_t at : {4 * i + c, 4 * i + c + 2})
        boxes[at] = std::clamp(boxes[at], 0.0, limits[2 * row + 1 - c] - margin);
    }
  return boxes;
}

double naive_iou(const Array& boxes, int64_t i, const Array& others, int64_t j, double margin) {
  double shared = 1, area = 1, other_area = 1;
  for (int64_t c = 0; c < 2; ++c) {
    const double low = std::max(boxes[4 * i + c], others[4 * j + c]);
    const double high = std::min(boxes[4 * i + c + 2], others[4 * j + c + 2]);
    shared *= std::max(high - low + margin, 0.0);
    area *= boxes[4 * i + c + 2] - boxes[4 * i + c] + margin;
    other_area *= others[4 * j + c + 2] - others[4 * j + c] + margin;
  }
  return shared > 0 ? shared / (area + other_area - shared) : 0;
}

TEST(Boxes, Encode) {
  const Array boxes = random_corners(700, 1), anchors = random_corners(700, 3);
  for (const auto& context : devices())
    for (const BoxCoder& coder : {BoxCoder{}, kWeighted, kPlusOne}) {
      const Tensor deltas = context->empty({700, 4});
      encode_boxes(*context, to_device(*context, boxes), to_device(*context, anchors), coder, deltas);
      expect_close(to_host(*context, deltas), naive_encode(boxes, anchors, coder), 2e-6, "encode_boxes");
    }
}

TEST(Boxes, Decode) {
  const Array anchors = random_corners(300, 5), deltas = random_array({300, 3, 4}, 7, -3, 3);
  // 100 images with three anchors each.
  const Array sizes = random_array({100, 2}, 8, 60, 160);
  Array limits({300, 2});
  for (int64_t i = 0; i < limits.count(); ++i) limits[i] = sizes[i / 6 * 2 + i % 2];
  for (const auto& context : devices())
    for (const BoxCoder& coder : {BoxCoder{.clip = 1.5f}, kWeighted, kPlusOne})
      for (const Array& limit : {Array(), limits}) {
        const Tensor boxes = context->empty({300, 3, 4});
        const Tensor limit_tensor = limit.values.empty() ? Tensor() : to_device(*context, sizes);
        decode_boxes(*context, to_device(*context, deltas), to_device(*context, anchors), limit_tensor, coder, boxes);
        expect_close(to_host(*context, boxes), naive_decode(deltas, anchors, limit, coder), 2e-6, "decode_boxes");
      }
}

TEST(Boxes, DecodeOfSixteenBits) {
  const Array anchors = random_corners(50, 5), deltas = random_array({50, 2, 4}, 7, -3, 3);
  for (const auto& context : devices())
    for (const DType dtype : {DType::bf16, DType::f16}) {
      if (context->is_cpu() && dtype == DType::f16) continue;
      const Tensor boxes = context->empty({50, 2, 4});
      decode_boxes(*context, to_device(*context, deltas, dtype), to_device(*context, anchors), Tensor(), kWeighted,
                   boxes);
      expect_close(to_host(*context, boxes), naive_decode(rounded(deltas, dtype), anchors, {}, kWeighted), 2e-6,
                   "decode_boxes");
    }
}

TEST(Boxes, DecodeUndoesEncode) {
  const Array boxes = random_corners(64, 11), anchors = random_corners(64, 13);
  for (const auto& context : devices()) {
    const Tensor anchor = to_device(*context, anchors), deltas = context->empty({64, 4});
    const Tensor decoded = context->empty({64, 1, 4});
    encode_boxes(*context, to_device(*context, boxes), anchor, kPlusOne, deltas);
    decode_boxes(*context, deltas.view({64, 1, 4}), anchor, Tensor(), kPlusOne, decoded);
    expect_close(to_host(*context, decoded.view({64, 4})), boxes, 3e-6, "decoded");
  }
}

TEST(Boxes, WhatIsNotANumberIsSeen) {
  for (const auto& context : devices()) {
    const Tensor deltas = to_device<float>(*context, {1, 1, 4}, {NAN, 0, 0, NAN});
    const Tensor anchor = to_device<float>(*context, {1, 4}, {0, 0, 8, 8});
    const Tensor limits = to_device<float>(*context, {1, 2}, {4, 6}), boxes = context->empty({1, 1, 4});
    decode_boxes(*context, deltas, anchor, limits, {}, boxes);
    for (const float corner : values_of<float>(*context, boxes)) EXPECT_TRUE(std::isnan(corner) || corner == 6);
  }
}

TEST(Boxes, Iou) {
  const Array boxes = random_corners(123, 15), others = random_corners(77, 17);
  for (const auto& context : devices())
    for (const bool plus_one : {false, true}) {
      const Tensor iou = context->empty({123, 77});
      box_iou(*context, to_device(*context, boxes), to_device(*context, others), plus_one, iou);
      Array expected({123, 77});
      for (int64_t i = 0; i < 123; ++i)
        for (int64_t j = 0; j < 77; ++j) expected[77 * i + j] = naive_iou(boxes, i, others, j, plus_one ? 1 : 0);
      expect_close(to_host(*context, iou), expected, 2e-6, "box_iou");
    }
}

TEST(Boxes, IouOfBoxesWithoutArea) {
  for (const auto& context : devices()) {
    const Tensor boxes = to_device<float>(*context, {3, 4}, {1, 1, 1, 1, 0, 0, 2, 2, 3, 3, 0, 0});
    const Tensor iou = context->empty({3, 3});
    box_iou(*context, boxes, boxes, false, iou);
    EXPECT_EQ(values_of<float>(*context, iou), (std::vector<float>{0, 0, 0, 0, 1, 0, 0, 0, 0}));
  }
}

// Decisions by IoU must not depend on the device.
TEST(Boxes, IousHaveTheSameBitsOnAllDevices) {
  const Array boxes = random_corners(200, 19), others = random_corners(200, 21);
  std::vector<float> first;
  for (const auto& context : devices()) {
    const Tensor iou = context->empty({200, 200});
    box_iou(*context, to_device(*context, boxes), to_device(*context, others), false, iou);
    const auto found = values_of<float>(*context, iou);
    if (first.empty()) first = found;
    EXPECT_EQ(found, first);
  }
}

TEST(Boxes, RefuseWhatDoesNotFit) {
  for (const auto& context : devices()) {
    const Tensor boxes = context->zeros({3, 4}), few = context->zeros({2, 4}), none;
    expect_error([&] { encode_boxes(*context, boxes, few, {}, boxes); }, Fault::config, "encode_boxes: anchors");
    expect_error([&] { encode_boxes(*context, none, boxes, {}, boxes); }, Fault::config, "encode_boxes: boxes");
    expect_error([&] { encode_boxes(*context, boxes, boxes, {.ww = 0}, boxes); }, Fault::config, "must be positive");
    expect_error([&] { decode_boxes(*context, boxes, boxes, none, {}, boxes); }, Fault::config, "[n, k, 4]");
    const Tensor deltas = context->zeros({3, 1, 4});
    expect_error([&] { decode_boxes(*context, deltas, boxes, boxes, {}, deltas); }, Fault::config,
                 "decode_boxes: limits");
    expect_error([&] { box_iou(*context, boxes, few, false, boxes); }, Fault::config, "box_iou: iou");
  }
}

}  // namespace
}  // namespace dtrain
