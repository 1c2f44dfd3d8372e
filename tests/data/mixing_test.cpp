// Mixup and CutMix: distribution of parameters, and their batch fields.
#include "dtrain/data/mixing.h"

#include <cmath>

#include "tests/testing.h"

namespace dtrain::data {
namespace {

constexpr int kDraws = 20000, kWidth = 30, kHeight = 20;

TEST(DrawMixture, MixupRatioIsBetaDistributed) {
  for (const double alpha : {0.1, 0.2, 1.0, 4.0}) {
    double sum = 0, squares = 0, fourth = 0;
    for (uint64_t cursor = 0; cursor < kDraws; ++cursor) {
      const Mixture mixture = draw_mixture({.mixup_alpha = alpha}, kWidth, kHeight, 1, cursor);
      ASSERT_EQ(mixture.share, mixture.weight);
      ASSERT_EQ(mixture.box, (Window{0, 0, kWidth, kHeight}));
      const double off = double{mixture.share} - 0.5;
      sum += off;
      squares += off * off;
      fourth += off * off * off * off;
    }
    const double variance = 1 / (4 * (2 * alpha + 1)), found = squares / kDraws;
    EXPECT_NEAR(sum / kDraws, 0, 4 * std::sqrt(variance / kDraws)) << alpha;
    EXPECT_NEAR(found, variance, 4 * std::sqrt((fourth / kDraws - found * found) / kDraws)) << alpha;
  }
}

TEST(DrawMixture, CutMixLabelWeightEqualsBoxArea) {
  double shares = 0;
  for (uint64_t cursor = 0; cursor < kDraws; ++cursor) {
    const Mixture mixture = draw_mixture({.cutmix_alpha = 1}, kWidth, kHeight, 1, cursor);
    const Window& box = mixture.box;
    ASSERT_TRUE(box.x >= 0 && box.y >= 0 && box.width >= 0 && box.height >= 0);
    ASSERT_TRUE(box.x + box.width <= kWidth && box.y + box.height <= kHeight);
    ASSERT_EQ(mixture.weight, 0);
    ASSERT_NEAR(double{mixture.share}, 1 - box.width * box.height / 600.0, 1e-6);
    shares += double{mixture.share};
  }
  // Mean from NumPy over two million draws; standard deviation 0.18.
  EXPECT_NEAR(shares / kDraws, 0.7083, 4 * 0.18 / std::sqrt(kDraws));
}

TEST(DrawMixture, SelectsMethodsByProbability) {
  int plain = 0, pasted = 0;
  const MixingOptions options{.mixup_alpha = 1, .cutmix_alpha = 1, .probability = 0.8, .cutmix_share = 0.25};
  for (uint64_t cursor = 0; cursor < kDraws; ++cursor) {
    const Mixture mixture = draw_mixture(options, kWidth, kHeight, 2, cursor);
    plain += mixture.share == 1 && mixture.weight == 1;
    pasted += mixture.weight == 0;
  }
  EXPECT_NEAR(plain / static_cast<double>(kDraws), 0.2, 4 * std::sqrt(0.16 / kDraws));
  EXPECT_NEAR(pasted / static_cast<double>(kDraws), 0.2, 4 * std::sqrt(0.16 / kDraws));
  expect_error([] { draw_mixture({.mixup_alpha = -1}, 1, 1, 0, 0); }, Fault::config, "mixing by mixup");
}

Batch batch_after(uint64_t cursor, int64_t rows) {
  Batch batch = make_batch({.fields = {{.name = "images", .shape = {kHeight, kWidth, 3}, .dtype = DType::u8}}}, rows);
  batch.cursor = cursor;
  return batch;
}

TEST(BatchMixer, PairsRowsWithPredecessors) {
  BatchMixer mixer({.mixup_alpha = 1}, 7, 1), repeated({.mixup_alpha = 1}, 7, 3);
  Batch batch = batch_after(64, 4), other = batch_after(64, 6), next = batch_after(68, 4);
  mixer.add_to(batch);
  repeated.add_to(other);
  const auto words = [](const Batch& of, const char* name) {
    const auto span = of[name].span<int32_t>();
    return std::vector<int32_t>(span.begin(), span.end());
  };
  EXPECT_EQ(words(batch, "partners"), (std::vector<int32_t>{3, 0, 1, 2}));
  EXPECT_EQ(words(other, "partners"), (std::vector<int32_t>{3, 4, 5, 0, 1, 2}));
  EXPECT_EQ(words(batch, "boxes"), words(batch, "boxes"));
  EXPECT_EQ(batch.layout.fields.size(), batch.fields.size());
  const float share = batch["shares"].span<float>()[0];
  EXPECT_EQ(share, other["shares"].span<float>()[5]) << "the same for a rank's part of a batch";
  mixer.add_to(next);
  EXPECT_NE(share, next["shares"].span<float>()[0]);
  EXPECT_EQ(batch["shares"].raw(), next["shares"].raw()) << "in place";
}

}  // namespace
}  // namespace dtrain::data
