// Detector variants in dtrain-mask-rcnn: keys and short trainings.
#include <cmath>

#include "apps/mask_rcnn/settings.h"
#include "dtrain/core/error.h"
#include "tests/apps/mask_rcnn_fixture.h"
#include "tests/files.h"

namespace dtrain::mask_rcnn {
namespace {

Settings variant(const std::vector<std::string>& assignments) {
  Settings settings = preset_settings("tensorpack");
  for (const std::string& assignment : assignments) apply(settings, assignment);
  return settings;
}

TEST(MaskRcnnVariants, DetectorVariants) {
  const Settings c4 = variant({"RPN.TRAIN_PRE_NMS_TOPK=9000", "RPN.TEST_POST_NMS_TOPK=500", "MODE_FPN=False",
                               "RPN.HEAD_DIM=512", "BACKBONE.RESNET_NUM_BLOCKS=[3,4,23,3]"});
  EXPECT_FALSE(c4.detector.pyramid);
  EXPECT_EQ(c4.detector.c4.rpn_channels, 512);
  EXPECT_EQ(c4.detector.c4.training.per_level, 9000);
  EXPECT_EQ(c4.detector.c4.training.total, 2000);
  EXPECT_EQ(c4.detector.c4.evaluation.per_level, 6000);
  EXPECT_EQ(c4.detector.c4.evaluation.total, 500);
  // The longest side need not be a multiple of the coarsest stride.
  EXPECT_EQ(c4.data.training_resize.max_size, 1333);
  EXPECT_FLOAT_EQ(c4.detector.box.coder.clip, std::log(1333.0f / 16));
  c4.check();

  const Settings cascade =
      variant({"CASCADE.IOUS=[0.4,0.5,0.65]", "FPN.CASCADE=True", "FRCNN.FG_THRESH=0.4",
               "CASCADE.BBOX_REG_WEIGHTS=[[10,10,5,5],[20,20,10,10],[30,30,15,12.5]]", "FPN.NORM=GN"});
  EXPECT_TRUE(cascade.detector.cascade);
  EXPECT_TRUE(cascade.detector.pyramid_norm);
  ASSERT_EQ(cascade.detector.stages.size(), 3u);
  EXPECT_EQ(cascade.detector.stages[2].iou, 0.65f);
  EXPECT_EQ(cascade.detector.stages[2].weights, (std::array<float, 4>{30, 30, 15, 12.5f}));
  cascade.check();
}

TEST(MaskRcnnVariants, NormsOfTheBackbone) {
  const models::ResNetOptions frozen = variant({"BACKBONE.NORM=FreezeBN"}).detector.backbone;
  EXPECT_EQ(frozen.norm, models::ConvNorm::batch);
  EXPECT_TRUE(frozen.batch_norm.frozen);
  EXPECT_FALSE(frozen.zero_last_gamma);
  const Settings synchronised = variant({"BACKBONE.NORM=SyncBN"});
  EXPECT_EQ(synchronised.detector.backbone.norm, models::ConvNorm::batch);
  EXPECT_FALSE(synchronised.detector.backbone.batch_norm.frozen);
  EXPECT_TRUE(synchronised.synchronised_norms);
  EXPECT_EQ(synchronised.described().at("BACKBONE.NORM"), "SyncBN");
  const Settings groups = variant({"BACKBONE.NORM=SyncBN", "BACKBONE.NORM=GN"});
  EXPECT_EQ(groups.detector.backbone.norm, models::ConvNorm::group);
  EXPECT_TRUE(groups.detector.backbone.zero_last_gamma);
  EXPECT_FALSE(groups.synchronised_norms);
  EXPECT_EQ(groups.described().at("BACKBONE.NORM"), "GN");
  EXPECT_EQ(variant({"BACKBONE.NORM='None'"}).detector.backbone.norm, models::ConvNorm::none);
}

TEST(MaskRcnnVariants, RefusesConflictingSettings) {
  const auto refused = [](const std::vector<std::string>& assignments, const std::string& reason) {
    expect_error([&] { variant(assignments).check(); }, Fault::config, reason);
  };
  refused({"FPN.NORM=GN", "FPN.NUM_CHANNEL=100"}, "FPN.NUM_CHANNEL=100: expected a multiple of 32");
  refused({"FPN.CASCADE=True", "MODE_FPN=False"}, "expected MODE_FPN=True");
  refused({"BACKBONE.NORM=SyncBN", "MODE_FPN=False"}, "padding RoIs");
  refused({"FPN.CASCADE=True", "FRCNN.FG_THRESH=0.6"}, "expected the first head's with FPN.CASCADE, 0.5");
}

class MaskRcnnForms : public MaskRcnn, public testing::WithParamInterface<Words> {};

INSTANTIATE_TEST_SUITE_P(All, MaskRcnnForms,
                         testing::Values(Words{"FPN.CASCADE=True"},
                                         Words{"MODE_FPN=False", "BACKBONE.NORM=FreezeBN", "RPN.HEAD_DIM=16",
                                               "RPN.TRAIN_PRE_NMS_TOPK=100", "RPN.TRAIN_POST_NMS_TOPK=50",
                                               "RPN.TEST_PRE_NMS_TOPK=100", "RPN.TEST_POST_NMS_TOPK=5",
                                               "FRCNN.BATCH_PER_IM=4"},
                                         Words{"BACKBONE.NORM=GN", "FPN.NORM=GN", "FPN.NUM_CHANNEL=32"},
                                         Words{"BACKBONE.NORM=SyncBN"}));

TEST_P(MaskRcnnForms, TrainResumeAndEvaluate) {
  const auto run = [&](const std::string& folder, int steps) {
    return run_program("dtrain-mask-rcnn", joined_words(train_words(folder, steps), GetParam()));
  };
  const ProgramResult whole = run("whole", 4);
  ASSERT_EQ(whole.code, 0) << whole.err;
  EXPECT_NE(whole.out.find("val-mAP(segm)/IoU=0.5:0.95: "), std::string::npos) << whole.out;
  if (sanitized()) return;  // mask_rcnn_test.cpp covers resumed runs
  ASSERT_EQ(run("parts", 2).code, 0);
  ASSERT_EQ(run("parts", 4).code, 0);
  EXPECT_EQ(read_file(weights("whole", 4)), read_file(weights("parts", 4)));
}

}  // namespace
}  // namespace dtrain::mask_rcnn
