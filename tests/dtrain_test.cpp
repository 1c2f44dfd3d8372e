// The umbrella header.
#include "dtrain/dtrain.h"

#include <type_traits>

#include "dtrain/data/coco/evaluate.h"
#include "dtrain/data/detection.h"
#include "dtrain/models/classifier.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

TEST(Version, TheTextIsThatOfTheNumbers) {
  EXPECT_EQ(concat(DTRAIN_VERSION_MAJOR, '.', DTRAIN_VERSION_MINOR, '.', DTRAIN_VERSION_PATCH), DTRAIN_VERSION);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
TEST(Deprecated, OldNamesStillCompile) {
  EXPECT_TRUE((std::is_same_v<Moment, Event> && std::is_same_v<Queue, Stream>));
  EXPECT_TRUE((std::is_same_v<ByteForm, QuantParams> && std::is_same_v<RunImages, RleMasks>));
  EXPECT_TRUE((std::is_same_v<OpWatch, OpObserver> && std::is_same_v<AskedFor, ExplicitSettings>));
  EXPECT_TRUE((std::is_same_v<SumReport, AllReduceReport>));
  EXPECT_TRUE(
      (std::is_same_v<data::Box, data::NormalizedBox> && std::is_same_v<models::Forward, models::ForwardFunction>));
  EXPECT_TRUE((std::is_same_v<data::coco::Box, data::coco::BoundingBox>));
  EXPECT_TRUE((std::is_same_v<data::coco::Image, data::coco::AnnotatedImage>));
  EXPECT_TRUE((std::is_same_v<data::coco::Evaluation, data::coco::DetectionMetrics>));
  EXPECT_TRUE((std::is_same_v<data::DetectionOptions, data::DetectionDatasetOptions>));
  static_cast<void>(&crop_runs), static_cast<void>(&mask_out_unknown_runs), static_cast<void>(&continue_as_trained);
  static_cast<void>(&sum_over_ranks);
}
#pragma GCC diagnostic pop

}  // namespace
}  // namespace dtrain
