#include "libdtrain/ops/claim_boxes.h"

#include "dtrain/ops/match_boxes.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

TEST(ClaimBoxes, EachGroundTruthTakesTheBoxThatMeetsItBest) {
  for (const auto& context : devices()) {
    const Tensor boxes =
        to_device(*context, {4, 4}, std::vector<float>{0, 0, 10, 10, 0, 0, 10, 10, 20, 0, 30, 10, 40, 0, 50, 10});
    const std::vector<float> truth = {
        0,  0, 5,  10,  // the first two boxes are equal: the lower one
        22, 0, 40, 10,  // the third box
        21, 0, 30, 10,  // also the third, with a larger IoU; but the first ground truth has it
        80, 0, 90, 10,  // overlaps none
        41, 0, 50, 10, 0, 0, 10, 10, 0, 0, 0, 0, 0, 0, 0, 0,  // second image, one valid ground truth
    };
    const Tensor matched =
        to_device(*context, {2, 4}, std::vector<int32_t>{kBackground, 7, 2, kIgnored, 5, 5, kBackground, 5});
    claim_boxes(*context, boxes, to_device(*context, {2, 4, 4}, truth),
                to_device(*context, {2}, std::vector<int32_t>{4, 1}), matched);
    EXPECT_EQ(values_of<int32_t>(*context, matched), (std::vector<int32_t>{0, 7, 1, kIgnored, 5, 5, kBackground, 0}));
  }
}

TEST(ClaimBoxes, RefuseWhatDoesNotFit) {
  for (const auto& context : devices()) {
    const Tensor boxes = context->zeros({3, 4}), truth = context->zeros({2, 5, 4});
    const Tensor counts = context->zeros({2}, DType::i32), matched = context->zeros({2, 3}, DType::i32);
    expect_error(
        [&] {
          claim_boxes(*context, context->zeros({4, 4}), truth, counts, matched);
        },
        Fault::config, "claim_boxes: boxes");
    expect_error(
        [&] {
          claim_boxes(*context, boxes, context->zeros({1, 5, 4}), counts, matched);
        },
        Fault::config, "claim_boxes: truth");
    expect_error([&] { claim_boxes(*context, boxes, truth, context->zeros({2}), matched); }, Fault::config,
                 "claim_boxes: counts");
  }
}

}  // namespace
}  // namespace dtrain
