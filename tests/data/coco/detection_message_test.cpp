// Detections survive a message between ranks bit for bit; truncated, corrupt and hostile messages are rejected.
#include "data/coco/detection_message.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "tests/testing.h"

namespace dtrain::data::coco {
namespace {

const Rle kMask{9, 20, {44, 136}};

std::string message_of(const std::vector<Detection>& detections) {
  std::string message;
  for (const Detection& detection : detections) append_detection(message, detection);
  return message;
}

template <class T>
std::string bytes_of(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

std::string record_head(uint8_t parts, double score = .5) {
  return bytes_of(parts) + bytes_of(int64_t{42}) + bytes_of(int64_t{18}) + bytes_of(score);
}

std::string mask_record(int64_t height, int64_t width, uint32_t length, const std::string& runs) {
  return record_head(2) + bytes_of(height) + bytes_of(width) + bytes_of(length) + runs;
}

void expect_invalid(const std::string& message, const std::string& part) {
  expect_error([&] { parse_detections(message); }, Fault::data, part);
}

TEST(DetectionMessage, RoundTripIsExact) {
  const double smallest = std::numeric_limits<double>::denorm_min(), largest = std::numeric_limits<double>::max();
  const std::vector<Detection> detections = {{42, 18, 1.0 / 3, BoundingBox{258.15, -0.0, smallest, largest}, {}},
                                             {INT64_MIN, INT64_MAX, 0, {}, kMask},
                                             {0, -3, 1, BoundingBox{0, -1, 1e8, 3}, kMask},
                                             {1, 1, .5, {}, Rle{1, 1, {1}}}};
  const std::vector<Detection> parsed = parse_detections(message_of(detections));
  ASSERT_EQ(parsed.size(), detections.size());
  for (size_t i = 0; i < parsed.size(); ++i) {
    EXPECT_EQ(parsed[i].image_id, detections[i].image_id);
    EXPECT_EQ(parsed[i].category_id, detections[i].category_id);
    EXPECT_EQ(parsed[i].score, detections[i].score);
    EXPECT_EQ(parsed[i].box, detections[i].box);
    EXPECT_EQ(parsed[i].mask, detections[i].mask);
  }
  EXPECT_TRUE(std::signbit(parsed[0].box->y));
  EXPECT_TRUE(parse_detections("").empty());
}

TEST(DetectionMessage, EncoderRejectsNonFiniteNumbers) {
  std::string message = "kept";
  for (const double number : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    expect_error(
        [&] {
          append_detection(message, {7, 1, number, BoundingBox{}, {}});
        },
        Fault::numeric, "detection in image 7 has the number");
    expect_error(
        [&] {
          append_detection(message, {7, 1, .5, BoundingBox{0, number, 1, 1}, {}});
        },
        Fault::numeric, "expected finite scores and boxes");
  }
  expect_error([&] { append_detection(message, {7, 1, .5, {}, {}}); }, Fault::config, "without box and mask");
  expect_error(
      [&] {
        append_detection(message, {7, 1, .5, BoundingBox{}, {}, {{1, 2, 3, 4, 5, 6}}});
      },
      Fault::config, "with polygons");
  EXPECT_EQ(message, "kept");
}

TEST(DetectionMessage, EveryTruncationIsRejected) {
  const std::string first = message_of({{42, 18, .5, BoundingBox{1, 2, 3, 4}, kMask}}), message = first + first;
  for (size_t size = first.size() + 1; size < message.size(); ++size)
    expect_invalid(message.substr(0, size), "detection at index 1: ");
}

TEST(DetectionMessage, InvalidRecordsAreRejected) {
  const double nan = std::nan("");
  const std::string runs = to_text(kMask), box = bytes_of(1.0) + bytes_of(2.0) + bytes_of(3.0);
  expect_invalid(R"([{"image_id": 1}])", "detection at index 0: parts 91, expected 1 (box), 2 (mask) or 3 (both)");
  expect_invalid(record_head(0), "parts 0, expected 1");
  expect_invalid(record_head(1, nan) + box + bytes_of(4.0), "score is nan, expected a finite number");
  expect_invalid(record_head(1) + box + bytes_of(nan), "box is nan, expected a finite number");
  const auto length = static_cast<uint32_t>(runs.size());
  EXPECT_EQ(parse_detections(mask_record(9, 20, length, runs)).front().mask, kMask);
  expect_invalid(mask_record(9, 20, UINT32_MAX, runs), concat(length, " bytes are left, expected at least 4294967295"));
  expect_invalid(mask_record(9, 20, length - 1, runs), "detection at index 0: RLE");
  expect_invalid(mask_record(0, 20, length, runs), "a size of 0 x 20 pixels");
  expect_invalid(mask_record(INT64_MAX, 2, length, runs), "a size of 9223372036854775807 x 2 pixels");
  expect_invalid(mask_record(9, 21, length, runs), "RLE of 180 pixels for a mask of 9 x 21");
  expect_invalid(mask_record(9, 20, 3, "\xff\xff\xff"), "RLE text");
}

}  // namespace
}  // namespace dtrain::data::coco
