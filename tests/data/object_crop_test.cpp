#include "data/object_crop.h"

#include <algorithm>

#include "tests/testing.h"

namespace dtrain::data {
namespace {

constexpr int kCrops = 3000;
const std::vector<BoxFractions> kScene = {{0.1f, 0.1f, 0.5f, 0.6f}, {0.4f, 0.3f, 0.9f, 0.9f}};

TEST(ObjectCrop, RespectsLimits) {
  RandomStream random(7, 1);
  int whole = 0;
  for (int draw = 0; draw < kCrops; ++draw) {
    const ObjectCrop crop = sample_object_crop(kScene, random);
    ASSERT_FALSE(crop.objects.empty());
    const auto& [x1, y1, x2, y2] = crop.part;
    ASSERT_TRUE(0 <= x1 && 0 <= y1 && x2 <= 1.000001f && y2 <= 1.000001f);
    ASSERT_TRUE(x2 - x1 >= 0.2999f && y2 - y1 >= 0.2999f);
    ASSERT_TRUE(x2 - x1 < 2 * (y2 - y1) && y2 - y1 < 2 * (x2 - x1));
    whole += crop.part == BoxFractions{0, 0, 1, 1} ? 1 : 0;
    for (size_t i = 0; i < kScene.size(); ++i) {
      // Every object intersects the crop, and objects with their centre inside are kept.
      const BoxFractions& box = kScene[i];
      ASSERT_TRUE(std::min(box[2], x2) > std::max(box[0], x1) && std::min(box[3], y2) > std::max(box[1], y1));
      const float x = (box[0] + box[2]) / 2, y = (box[1] + box[3]) / 2;
      ASSERT_EQ(std::ranges::count(crop.objects, i) == 1, x > x1 && x < x2 && y > y1 && y < y2);
    }
  }
  // At least 1/7, more because some IoU thresholds are unreachable.
  EXPECT_GT(whole, kCrops / 9);
  EXPECT_LT(whole, kCrops / 2);
}

TEST(ObjectCrop, WithoutObjectsKeepsTheWholeImage) {
  RandomStream random(7, 2);
  for (int draw = 0; draw < 20; ++draw) {
    const ObjectCrop crop = sample_object_crop({}, random);
    EXPECT_EQ(crop.part, (BoxFractions{0, 0, 1, 1}));
    EXPECT_TRUE(crop.objects.empty());
  }
}

TEST(ObjectCrop, MapsPixelsAndBoxes) {
  const ObjectCrop crop{.part = {0.25f, 0.5f, 0.75f, 1}, .objects = {0}};
  EXPECT_EQ(crop.window(201, 101), (Window{50, 50, 100, 50}));
  EXPECT_EQ(crop.window(1, 1), (Window{0, 0, 1, 1}));
  EXPECT_EQ(crop.box_in_part({0, 0.625f, 0.5f, 0.75f}), (BoxFractions{0, 0.25f, 0.5f, 0.5f}));
}

}  // namespace
}  // namespace dtrain::data
