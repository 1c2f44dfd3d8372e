#include "dtrain/data/detection_geometry.h"

#include "tests/testing.h"

namespace dtrain::data {
namespace {

TEST(DetectionGeometry, SizesMatchTensorpack) {
  const ResizeRule rule;
  EXPECT_EQ(resized({480, 640}, 800, rule), (ImageSize{800, 1067}));
  EXPECT_EQ(resized({640, 480}, 800, rule), (ImageSize{1067, 800}));
  EXPECT_EQ(resized({500, 500}, 800, rule), (ImageSize{800, 800}));
  EXPECT_EQ(resized({427, 640}, 640, rule), (ImageSize{640, 959}));
  EXPECT_EQ(resized({100, 1000}, 800, rule), (ImageSize{133, 1333}));
  EXPECT_EQ(resized({1000, 100}, 800, rule), (ImageSize{1333, 133}));
  EXPECT_EQ(resized({1, 60000}, 800, rule), (ImageSize{1, 1333}));
}

// Sizes of torchvision 0.29.2; the parity test torchvision_sizes compares 130 sizes.
TEST(DetectionGeometry, SizesMatchTorchvision) {
  const ResizeRule rule{.rounding = SizeRounding::down};
  EXPECT_EQ(resized({424, 640}, 800, rule), (ImageSize{800, 1207}));
  EXPECT_EQ(resized({480, 640}, 800, rule), (ImageSize{800, 1066}));
  EXPECT_EQ(resized({427, 640}, 640, rule), (ImageSize{640, 959}));
  EXPECT_EQ(resized({375, 500}, 800, rule), (ImageSize{800, 1066}));
  EXPECT_EQ(resized({640, 427}, 800, rule), (ImageSize{1199, 800}));
  EXPECT_EQ(resized({100, 1000}, 800, rule), (ImageSize{133, 1333}));
}

// Sizes of torchvision 0.14.1.
TEST(DetectionGeometry, SizesMatchTorchvisionBefore016) {
  const ResizeRule rule{.rounding = SizeRounding::down_single};
  EXPECT_EQ(resized({424, 640}, 800, rule), (ImageSize{799, 1207}));
  EXPECT_EQ(resized({480, 640}, 800, rule), (ImageSize{800, 1066}));
  EXPECT_EQ(resized({512, 640}, 800, rule), (ImageSize{800, 1000}));
  EXPECT_EQ(resized({427, 640}, 640, rule), (ImageSize{639, 959})) << "640 / 427 in floats is a little less";
  EXPECT_EQ(resized({375, 500}, 800, rule), (ImageSize{799, 1066}));
  EXPECT_EQ(resized({640, 427}, 800, rule), (ImageSize{1199, 799}));
  EXPECT_EQ(resized({100, 1000}, 800, rule), (ImageSize{133, 1333}));
}

TEST(DetectionGeometry, CanvasesHoldAllSizes) {
  const ResizeRule rule{.min_short_edge = 640, .max_short_edge = 800, .max_size = 1333};
  const std::vector<ImageSize> canvases = automatic_canvases(rule, 32);
  EXPECT_EQ(canvases, (std::vector<ImageSize>{{800, 1344}, {1344, 800}}));
  EXPECT_EQ(automatic_canvases({.min_short_edge = 512, .max_short_edge = 512, .max_size = 512}, 100),
            (std::vector<ImageSize>{{600, 600}}));
  for (int64_t height = 1; height < 1500; height += 13)
    for (int64_t width = 1; width < 1500; width += 17) {
      const ImageSize& canvas = canvases[canvas_of({height, width}, rule, canvases)];
      EXPECT_EQ(canvas == canvases[0], height <= width);
      for (const int64_t edge : {int64_t{640}, int64_t{700}, int64_t{800}}) {
        const ImageSize size = resized({height, width}, edge, rule);
        ASSERT_LE(size.height, canvas.height);
        ASSERT_LE(size.width, canvas.width);
      }
    }
}

TEST(DetectionGeometry, SelectsSmallestCanvas) {
  const ResizeRule rule;
  const std::vector<ImageSize> canvases = {{800, 1344}, {800, 1088}, {800, 800}};
  EXPECT_EQ(canvas_of({480, 640}, rule, canvases), 1u);
  EXPECT_EQ(canvas_of({480, 800}, rule, canvases), 0u);
  EXPECT_EQ(canvas_of({480, 480}, rule, canvases), 2u);
  expect_error(
      [&] {
        canvas_of({640, 480}, rule, canvases);
      },
      Fault::config, "an image of 480x640 becomes 800x1067 pixels, which no canvas holds");
}

TEST(DetectionGeometry, BoxesAreScaledAndFlipped) {
  EXPECT_EQ((Placement{{100, 200}, {50, 400}}.corners({10, 20, 30, 40})), (std::array<float, 4>{20, 10, 80, 30}));
  EXPECT_EQ((Placement{{100, 200}, {50, 400}, true}.corners({10, 20, 30, 40})),
            (std::array<float, 4>{320, 10, 380, 30}));
  EXPECT_EQ(clipped({-5, 90, 20, 20}, {100, 200}), (coco::BoundingBox{0, 90, 15, 10}));
  EXPECT_EQ(clipped({250, 300, 20, 20}, {100, 200}), (coco::BoundingBox{200, 100, 0, 0}));
}

TEST(DetectionGeometry, RejectsInvalidRules) {
  EXPECT_NO_THROW(ResizeRule().check());
  for (const ResizeRule& rule : {ResizeRule{.min_short_edge = 0}, ResizeRule{.min_short_edge = 801},
                                 ResizeRule{.max_size = 799}, ResizeRule{.max_size = 1 << 20}})
    expect_error([&] { rule.check(); }, Fault::config, "in ascending order");
}

}  // namespace
}  // namespace dtrain::data
