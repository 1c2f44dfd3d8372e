#include "libdtrain/ops/candidates.h"

#include <cmath>
#include <limits>

#include "tests/testing.h"

namespace dtrain {
namespace {

constexpr float kNone = -std::numeric_limits<float>::infinity();

TEST(Candidates, SmallBoxesLoseTheirScore) {
  for (const auto& context : devices()) {
    const std::vector<float> boxes = {0, 0, 4,    4,  // as small as allowed
                                      0, 0, 3.9f, 9, 0, 0, 9, 3.9f, 5, 5, 5, 9, 9, 9, 2, 2, 0, 0, NAN, 9, 1, 2, 30, 40};
    const Tensor box = to_device(*context, {7, 4}, boxes);
    const Tensor scores = to_device(*context, {7}, std::vector<float>{1, 2, 3, 4, 5, 6, -7});
    drop_small_boxes(*context, box, 4, scores);
    EXPECT_EQ(values_of<float>(*context, scores), (std::vector<float>{1, kNone, kNone, kNone, kNone, kNone, -7}));
    const Tensor again = to_device(*context, {7}, std::vector<float>(7, 1));
    drop_small_boxes(*context, box, 0, again);
    EXPECT_EQ(values_of<float>(*context, again), (std::vector<float>{1, 1, 1, kNone, kNone, kNone, 1}));
  }
}

TEST(Candidates, AreProbableObjectsOfRegionsThatAreThere) {
  for (const auto& context : devices()) {
    // Two images of three regions and three classes; the second has one region.
    const std::vector<float> probabilities = {0.9f, 0.06f, 0.04f, 0.1f, 0.05f, 0.85f, 0, 0.5f, 0.5f,
                                              0.2f, 0.7f,  0.1f,  0,    1,     0,     0, 0,    1};
    const Tensor from = to_device(*context, {6, 3}, probabilities);
    const Tensor counts = to_device(*context, {2}, std::vector<int32_t>{3, 1});
    const Tensor scores = context->empty({2, 9}), passed = context->empty({2}, DType::i32);
    class_candidates(*context, from, counts, 0.05f, scores, passed);
    EXPECT_EQ(values_of<float>(*context, scores),
              (std::vector<float>{kNone, 0.06f, kNone, kNone, kNone, 0.85f, kNone, 0.5f, 0.5f,  //
                                  kNone, 0.7f, 0.1f, kNone, kNone, kNone, kNone, kNone, kNone}));
    EXPECT_EQ(values_of<int32_t>(*context, passed), (std::vector<int32_t>{4, 2}));
    const Tensor indices = to_device(*context, {2, 3}, std::vector<int32_t>{5, 1, -1, 2, 4, 0});
    const Tensor classes = context->empty({2, 3}, DType::i32);
    candidate_classes(*context, indices, 3, classes);
    EXPECT_EQ(values_of<int32_t>(*context, classes), (std::vector<int32_t>{2, 1, -1, 2, 1, 0}));
  }
}

TEST(Candidates, AreOrderedClassByClass) {
  for (const auto& context : devices()) {
    // Two images of two regions and three classes.
    const std::vector<float> probabilities = {0.9f, 0.06f, 0.04f, 0.1f, 0.05f, 0.85f, 0.2f, 0.7f, 0.1f, 0, 1, 0};
    const Tensor scores = context->empty({2, 3, 2});
    poison(*context);
    scores_by_class(*context, to_device(*context, {4, 3}, probabilities), 0.05f, scores);
    EXPECT_EQ(values_of<float>(*context, scores), (std::vector<float>{kNone, kNone, 0.06f, kNone, kNone, 0.85f,  //
                                                                      kNone, kNone, 0.7f, 1, 0.1f, kNone}));
  }
}

TEST(Candidates, AreCountedOverManyBlocks) {
  for (const auto& context : devices()) {
    constexpr int64_t kRegions = 1000, kClasses = 7;
    std::vector<float> probabilities(2 * kRegions * kClasses);
    for (size_t i = 0; i < probabilities.size(); ++i) probabilities[i] = static_cast<float>(i % 10) / 10;
    const Tensor scores = context->empty({2, kRegions * kClasses}), passed = context->empty({2}, DType::i32);
    class_candidates(*context, to_device(*context, {2 * kRegions, kClasses}, probabilities),
                     to_device(*context, {2}, std::vector<int32_t>{kRegions, 10}), 0.45f, scores, passed);
    int32_t expected[2] = {};
    for (int64_t i = 0; i < 2 * kRegions * kClasses; ++i) {
      const int64_t image = i / (kRegions * kClasses), region = i / kClasses % kRegions;
      expected[image] += i % kClasses > 0 && i % 10 >= 5 && region < (image == 0 ? kRegions : 10);
    }
    EXPECT_EQ(values_of<int32_t>(*context, passed), std::vector<int32_t>(expected, expected + 2));
  }
}

TEST(Candidates, RefuseWhatDoesNotFit) {
  for (const auto& context : devices()) {
    const Tensor boxes = context->zeros({3, 4}), scores = context->zeros({2});
    expect_error([&] { drop_small_boxes(*context, boxes, 1, scores); }, Fault::config, "expected [n, 4] and [n]");
    const Tensor counts = context->zeros({1}, DType::i32);
    expect_error(
        [&] {
          class_candidates(*context, boxes, counts, 0, context->zeros({1, 11}), counts);
        },
        Fault::config, "expected [n * p, c]");
    expect_error(
        [&] {
          scores_by_class(*context, boxes, 0, context->zeros({1, 3, 3}));
        },
        Fault::config, "expected [n * p, c] and [n, c, p]");
    expect_error([&] { candidate_classes(*context, counts, 0, counts); }, Fault::config, "0 classes");
  }
}

}  // namespace
}  // namespace dtrain
