// Keys of TensorPack and AWS Mask R-CNN: their settings, and errors.
#include "apps/mask_rcnn/settings.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "apps/mask_rcnn/config_keys.h"
#include "apps/mask_rcnn/key_reference.h"
#include "apps/mask_rcnn/literal.h"
#include "dtrain/core/error.h"
#include "dtrain/models/detection/presets.h"
#include "tests/files.h"
#include "tests/testing.h"

namespace dtrain::mask_rcnn {
namespace {

Settings with(const std::string& preset, const std::vector<std::string>& assignments) {
  Settings settings = preset_settings(preset);
  for (const std::string& assignment : assignments) apply(settings, assignment);
  return settings;
}

std::string error_of(const std::string& assignment, const std::string& preset = "tensorpack") {
  Settings settings = preset_settings(preset);
  const auto before = settings.described();
  try {
    apply(settings, assignment);
  } catch (const Error& error) {
    EXPECT_EQ(settings.described(), before) << assignment << " was refused and changed something";
    return error.what();
  }
  return "";
}

TEST(MaskRcnnLiterals, AreParsedLikePython) {
  EXPECT_EQ(parse_literal("12").integer, 12);
  EXPECT_EQ(parse_literal("+3").integer, 3);
  EXPECT_EQ(parse_literal("-0.5").real, -0.5);
  EXPECT_EQ(parse_literal(".5").real, 0.5);
  EXPECT_EQ(parse_literal("5.").real, 5);
  EXPECT_EQ(parse_literal("1e-2").real, 0.01);
  EXPECT_TRUE(as_bool(parse_literal("True")));
  EXPECT_FALSE(as_bool(parse_literal("0")));
  EXPECT_EQ(parse_literal("None").kind, Literal::Kind::none);
  EXPECT_EQ(parse_literal("'a b'").text, "a b");
  EXPECT_EQ(parse_literal("\"it's\"").text, "it's");
  EXPECT_EQ(parse_literal("'None'").kind, Literal::Kind::text);
  EXPECT_EQ(parse_literal("coco_train2017").text, "coco_train2017");
  EXPECT_EQ(parse_literal("(7)").integer, 7);  // no tuple
  EXPECT_EQ(parse_literal("(7,)").items.size(), 1u);
  EXPECT_EQ(parse_literal("()").items.size(), 0u);
  EXPECT_EQ(parse_literal("1, 2,3").items.size(), 3u);

  const Literal nested = parse_literal(" [(8, 0.1), (10,0.01),(12,None) , ] ");
  ASSERT_EQ(nested.items.size(), 3u);
  EXPECT_EQ(nested.items[0].items[1].real, 0.1);
  EXPECT_EQ(nested.items[1].source, "(10,0.01)");
  EXPECT_EQ(nested.items[2].items[1].kind, Literal::Kind::none);
}

TEST(MaskRcnnLiterals, AreNeverEvaluated) {
  for (const char* text : {"", "[", "[1", "[1 2]", "[1,,2]", "(1,]", "1]", "'a", "'a\\n'", "[1] 2", ",", "f(1)",
                           "1 + 1", "[[[[[[[[[[[1]]]]]]]]]]]"})
    expect_error([&] { parse_literal(text); }, Fault::config, "expected ");
  EXPECT_EQ(parse_literal("1e-2/8").kind, Literal::Kind::text);
  EXPECT_EQ(parse_literal("nan").kind, Literal::Kind::text);
  EXPECT_EQ(parse_literal("inf").kind, Literal::Kind::text);
  EXPECT_EQ(parse_literal("1e999").kind, Literal::Kind::text);
  EXPECT_EQ(parse_literal("99999999999999999999").kind, Literal::Kind::real);
  expect_error([] { parse_literal(std::string(100000, '[')); }, Fault::config, "expected no deeper nesting");
}

TEST(MaskRcnnSettings, PresetsHaveTheDefaultsOfTheirPrograms) {
  const Settings tensorpack = preset_settings("tensorpack");
  EXPECT_EQ(tensorpack.rate.base_rate, 0.01);
  EXPECT_EQ(tensorpack.rate.reference_batch, 8);
  EXPECT_EQ(tensorpack.rate.end, 180'000);
  EXPECT_EQ(tensorpack.data.training, std::vector<std::string>{"coco_train2017"});
  EXPECT_EQ(tensorpack.data.training_resize.max_size, 1344);
  EXPECT_FALSE(tensorpack.rate.decays_biases);
  EXPECT_EQ(tensorpack.detector.classes, 81);

  const Settings early = preset_settings("tensorpack2019");
  EXPECT_EQ(early.rate.warmup_rate, 0.0033);
  EXPECT_EQ(early.rate.end, 360'000);
  EXPECT_EQ(early.evaluate_epochs, 25);

  const Settings aws = preset_settings("aws");
  EXPECT_EQ(aws.rate.reference_batch, 1);
  EXPECT_EQ(aws.rate.base_rate, 0.0015625);
  EXPECT_EQ(aws.box_target, 0.377);
  EXPECT_EQ(aws.described().at("TRAIN.LR_EPOCH_SCHEDULE"), "[(8, 0.1), (10, 0.01), (12, None)]");
  EXPECT_EQ(aws.described().at("RPN.TRAIN_PER_LEVEL_PRE_NMS_TOPK"), "4000");

  EXPECT_EQ(preset_settings("torchvision").rate.base_rate, 0.02);
  for (const models::DetectorPreset& preset : models::detector_presets())
    EXPECT_NO_THROW(preset_settings(preset.name).check());
  expect_error([] { preset_settings("detectron"); }, Fault::config, "torchvision, tensorpack, tensorpack2019, aws");
}

TEST(MaskRcnnSettings, KeysSetTheirFields) {
  const Settings s = with("tensorpack", {"MODE_MASK=False",
                                         "DATA.BASEDIR=/data/a b=c",
                                         "DATA.TRAIN=('coco_train2014', \"balloon_train\")",
                                         "DATA.VAL=val2014",
                                         "DATA.CLASS_NAMES=['BG', 'cat', 'sports ball']",
                                         "DATA.FILTER_EMPTY_ANNOTATIONS=False",
                                         "BACKBONE.WEIGHTS='/w/R50.npz'",
                                         "BACKBONE.RESNET_NUM_BLOCKS=[3,4,23,3]",
                                         "BACKBONE.STRIDE_1X1=True",
                                         "BACKBONE.TF_PAD_MODE=1",
                                         "BACKBONE.NORM=BN",
                                         "TRAIN.BATCH_SIZE_PER_GPU=4",
                                         "TRAIN.SEED=7",
                                         "TRAIN.STARTING_EPOCH=3",
                                         "TRAIN.GRADIENT_CLIP=0.36",
                                         "TRAIN.CHECKPOINT_PERIOD = 2",
                                         "PREPROC.TEST_SHORT_EDGE_SIZE=600",
                                         "PREPROC.PIXEL_STD=[1,2,3.5]",
                                         "RPN.ANCHOR_SIZES=(16,32,64,128,256)",
                                         "RPN.UNQUANTIZED_ANCHOR=False",
                                         "RPN.TRAIN_PER_LEVEL_NMS_TOPK=1500",
                                         "FRCNN.FG_THRESH=0.6",
                                         "FRCNN.BBOX_REG_WEIGHTS=[20., 20., 10., 10.]",
                                         "FPN.FRCNN_HEAD_FUNC=fastrcnn_4conv1fc_gn_head",
                                         "FPN.MRCNN_HEAD_FUNC=maskrcnn_up4conv_gn_head",
                                         "TEST.RESULTS_PER_IM=50"});
  EXPECT_FALSE(s.detector.masks);
  EXPECT_EQ(s.data.base_dir, "/data/a b=c");
  EXPECT_EQ(s.data.training, (std::vector<std::string>{"coco_train2014", "balloon_train"}));
  EXPECT_EQ(s.starting_epoch, 3);
  EXPECT_EQ(s.data.validation, std::vector<std::string>{"val2014"});
  EXPECT_EQ(s.data.classes, (std::vector<std::string>{"cat", "sports ball"}));
  EXPECT_TRUE(s.data.keep_empty);
  EXPECT_EQ(s.weights, "/w/R50.npz");
  EXPECT_EQ(s.detector.backbone.blocks, (std::vector<int>{3, 4, 23, 3}));
  EXPECT_FALSE(s.detector.backbone.stride_in_3x3);
  EXPECT_EQ(s.detector.backbone.padding, models::StridedPadding::after);
  EXPECT_FALSE(s.detector.backbone.batch_norm.frozen);
  EXPECT_EQ(s.batch, 4);
  EXPECT_EQ(s.seed, 7);
  EXPECT_EQ(s.rate.clip_norm, 0.36);
  EXPECT_EQ(s.checkpoint_epochs, 2);
  EXPECT_EQ(s.data.evaluation_resize.max_short_edge, 600);
  EXPECT_EQ(s.data.deviation[2], 3.5f);
  EXPECT_EQ(s.detector.rpn.sizes[0], 16);
  EXPECT_EQ(s.detector.rpn.anchors.rounding, AnchorOptions::Rounding::detectron);
  EXPECT_EQ(s.detector.rpn.training.per_level, 1500);
  EXPECT_EQ(s.detector.rpn.training.total, 1500);
  EXPECT_EQ(s.detector.box.match.positive, 0.6f);
  EXPECT_EQ(s.detector.box.match.negative, 0.6f);
  EXPECT_EQ(s.detector.box.coder.wx, 20);
  EXPECT_EQ(s.detector.box.coder.wh, 10);
  EXPECT_EQ(s.detector.box.convolutions, 4);
  EXPECT_EQ(s.detector.box.linear_layers, 1);
  EXPECT_TRUE(s.detector.mask.group_norm);
  EXPECT_EQ(s.detector.detection.per_image, 50);
}

TEST(MaskRcnnSettings, SchedulesByName) {
  const Settings s = with("aws", {"TRAIN.LR_SCHEDULE=2x"});
  EXPECT_FALSE(s.rate.in_epochs);
  ASSERT_EQ(s.rate.drops.size(), 2u);
  EXPECT_EQ(s.rate.drops[0].after, 240'000);
  EXPECT_EQ(s.rate.drops[0].factor, 0.1);
  EXPECT_EQ(s.rate.drops[1].after, 320'000);
  EXPECT_EQ(s.rate.drops[1].factor, 0.01);
  EXPECT_EQ(s.rate.end, 360'000);
  EXPECT_EQ(with("tensorpack2019", {"TRAIN.LR_SCHEDULE='1x'"}).rate.end, 180'000);
}

TEST(MaskRcnnSettings, SharesFollowInAnyOrder) {
  for (const bool share_first : {true, false}) {
    std::vector<std::string> keys = {"FRCNN.FG_RATIO=0.3", "FRCNN.BATCH_PER_IM=128"};
    if (!share_first) std::swap(keys[0], keys[1]);
    const Settings s = with("tensorpack", keys);
    EXPECT_EQ(s.detector.box.batch, 128);
    EXPECT_EQ(s.detector.box.positives, 38);
  }
  EXPECT_EQ(with("tensorpack", {"RPN.BATCH_PER_IM=512"}).detector.rpn.positives, 256);
}

TEST(MaskRcnnSettings, SizesOfImages) {
  Settings s = with("tensorpack", {"PREPROC.TRAIN_SHORT_EDGE_SIZE=[640,800]", "PREPROC.MAX_SIZE=1000"});
  EXPECT_EQ(s.data.training_resize.min_short_edge, 640);
  EXPECT_EQ(s.data.training_resize.max_short_edge, 800);
  EXPECT_EQ(s.data.training_resize.max_size, 1024);  // a multiple of 32
  EXPECT_FLOAT_EQ(s.detector.box.coder.clip, std::log(64.0f));
  apply(s, "PREPROC.TRAIN_SHORT_EDGE_SIZE=600");
  EXPECT_EQ(s.data.training_resize.min_short_edge, 600);
  EXPECT_EQ(with("torchvision", {"PREPROC.MAX_SIZE=1000"}).data.evaluation_resize.max_size, 1000);

  EXPECT_TRUE(s.data.canvases().empty());
  apply(s, "PREPROC.PREDEFINED_PADDING=True");
  const std::vector<data::ImageSize> canvases = {{800, 1024}, {1024, 800}, {800, 1216},
                                                 {1216, 800}, {800, 1376}, {1376, 800}};
  EXPECT_EQ(s.data.canvases(), canvases);
  apply(s, "PREPROC.PADDING_SHAPES=[(512, 512)]");
  EXPECT_EQ(s.data.canvases(), (std::vector<data::ImageSize>{{512, 512}}));
}

TEST(MaskRcnnSettings, RefusesWithTheReason) {
  EXPECT_EQ(error_of("TRAIN.BASE_RL=1"), "unknown key TRAIN.BASE_RL, did you mean TRAIN.BASE_LR?");
  EXPECT_EQ(error_of("BASE_LR=1"), "unknown key BASE_LR, did you mean TRAIN.BASE_LR?");
  EXPECT_EQ(error_of("SOMETHING.ELSE_ALTOGETHER=1"), "unknown key SOMETHING.ELSE_ALTOGETHER");
  EXPECT_EQ(error_of("TRAIN.BASE_LR"), "expected KEY=VALUE, found 'TRAIN.BASE_LR'");
  EXPECT_EQ(error_of("TRAIN.BASE_LR=1e-2/8"), "TRAIN.BASE_LR=1e-2/8: expected a number, found 1e-2/8");
  EXPECT_EQ(error_of("TRAIN.BASE_LR=-1"), "TRAIN.BASE_LR=-1: expected a number of at least 0, found -1");
  EXPECT_EQ(error_of("DATA.ABSOLUTE_COORD=False"),
            "DATA.ABSOLUTE_COORD=False: not supported: box coordinates are in pixels, as in COCO");
  EXPECT_EQ(error_of("DATA.ABSOLUTE_COORD=maybe"),
            "DATA.ABSOLUTE_COORD=maybe: expected one of True, true, 1, False, false, 0");
  EXPECT_EQ(error_of("BACKBONE.NORM=LN"), "BACKBONE.NORM=LN: expected one of FreezeBN, BN, SyncBN, GN, None");
  for (const char* assignment :
       {"FPN.PROPOSAL_MODE=Joint", "RPN.ANCHOR_STRIDE=8", "FPN.ANCHOR_STRIDES=(8,16,32,64,128)",
        "RPN.CROWD_OVERLAP_THRESH=0.7", "RPN.TOPK_PER_IMAGE=False"})
    EXPECT_TRUE(contains(error_of(assignment), "not supported: ")) << assignment;
  for (const char* assignment : {"MODE_MASK=2",
                                 "DATA.TRAIN=3",
                                 "DATA.TRAIN=[1]",
                                 "DATA.TRAIN=../x",
                                 "DATA.VAL=''",
                                 "BACKBONE.RESNET_NUM_BLOCKS=[3,4,6]",
                                 "BACKBONE.RESNET_NUM_BLOCKS=[3,4,6,0]",
                                 "BACKBONE.FREEZE_AT=2.5",
                                 "TRAIN.LR_SCHEDULE=10x",
                                 "TRAIN.LR_SCHEDULE=[]",
                                 "TRAIN.LR_SCHEDULE=[0]",
                                 "TRAIN.LR_EPOCH_SCHEDULE=[(8,0.1)]",
                                 "TRAIN.LR_EPOCH_SCHEDULE=[(8,None),(9,0.1)]",
                                 "TRAIN.LR_EPOCH_SCHEDULE=[8,9]",
                                 "TRAIN.WARMUP=-1",
                                 "PREPROC.TRAIN_SHORT_EDGE_SIZE=[800,600]",
                                 "PREPROC.TRAIN_SHORT_EDGE_SIZE=[1,2,3]",
                                 "PREPROC.MAX_SIZE=0",
                                 "PREPROC.PIXEL_MEAN=[1,2]",
                                 "PREPROC.PIXEL_STD=[1,2,0]",
                                 "PREPROC.PADDING_SHAPES=[]",
                                 "PREPROC.ROUND_PIXELS=2",
                                 "PREPROC.EXIF_ORIENTATION=turn",
                                 "RPN.ANCHOR_SIZES=[32]",
                                 "RPN.ANCHOR_RATIOS=[]",
                                 "FPN.NORM=BN",
                                 "CASCADE.IOUS=[0.5, 0.6, 1.7]",
                                 "CASCADE.BBOX_REG_WEIGHTS=[10, 10, 5, 5]",
                                 "CASCADE.BBOX_REG_WEIGHTS=[[10, 10, 5, 5], [20, 20, 10, 10], [30, 30, 15]]",
                                 "FPN.FRCNN_HEAD_FUNC=fastrcnn_3fc_head",
                                 "FPN.BOXCLASS_HEAD_FUNC=fastrcnn_2fc_head",
                                 "TEST.FRCNN_NMS_THRESH=1.5",
                                 "TRAINER=ps",
                                 "TRAIN.BACKBONE_NCHW=x",
                                 "PRESET=aws"})
    EXPECT_TRUE(contains(error_of(assignment), ": ")) << assignment;
}

TEST(MaskRcnnSettings, PrintsNoticesForKeysWithoutEffect) {
  Settings settings = preset_settings("aws");
  const auto before = settings.described();
  for (const char* assignment :
       {"TRAINER=horovod", "TRAINER='replicated'", "TRAIN.NUM_GPUS=None", "TRAIN.FPN_NCHW=True", "DATA.NUM_WORKERS=0"})
    EXPECT_TRUE(contains(apply(settings, assignment), " has no effect: ")) << assignment;
  for (const char* assignment : {"MODE_FPN=True", "FPN.NORM=None", "FPN.CASCADE=False", "FPN.PROPOSAL_MODE='Level'",
                                 "RPN.ANCHOR_STRIDE=16", "FPN.ANCHOR_STRIDES=(4, 8, 16, 32, 64)",
                                 "RPN.CROWD_OVERLAP_THRESH=9.99", "TRAIN.STARTING_EPOCH=1", "PRESET=aws"})
    EXPECT_EQ(apply(settings, assignment), "") << assignment;
  EXPECT_EQ(settings.described(), before);
}

TEST(MaskRcnnSettings, SizesMatchTheTorchvisionVersion) {
  const auto size = [](const Settings& s) { return data::resized({424, 640}, 800, s.data.evaluation_resize); };
  EXPECT_EQ(size(preset_settings("torchvision")), (data::ImageSize{800, 1207}));
  const Settings older = with("torchvision", {"PREPROC.RESIZE_SCALE_DTYPE=float32"});
  EXPECT_EQ(size(older), (data::ImageSize{799, 1207}));
  EXPECT_EQ(older.data.training_resize.rounding, data::SizeRounding::down_single);
  EXPECT_FALSE(older.data.training_resize.rounds_pixels || older.data.evaluation_resize.rounds_pixels);
  EXPECT_TRUE(preset_settings("tensorpack").data.training_resize.rounds_pixels);
  EXPECT_TRUE(with("torchvision", {"PREPROC.ROUND_PIXELS=True"}).data.training_resize.rounds_pixels);
  EXPECT_EQ(with("aws", {"PREPROC.EXIF_ORIENTATION='ignore'"}).data.orientation, data::Orientation::ignore);
  EXPECT_NE(error_of("PREPROC.RESIZE_SCALE_DTYPE=bf16", "torchvision").find("expected float64"), std::string::npos);
  EXPECT_NE(error_of("PREPROC.RESIZE_SCALE_DTYPE=float32", "aws").find("rounds sizes as TensorPack"),
            std::string::npos);
}

TEST(MaskRcnnSettings, TheReferenceHasEveryKey) {
  std::vector<std::string> keys, documented;
  for (const ConfigKey& key : config_keys()) keys.push_back(key.name);
  for (const KeyMeaning& key : key_meanings()) documented.emplace_back(key.name);
  std::ranges::sort(keys);
  std::ranges::sort(documented);
  EXPECT_EQ(documented, keys);
  EXPECT_NE(key_help().find("\nTRAIN.BASE_LR (float; default torchvision 0.02, tensorpack 0.01, "), std::string::npos)
      << key_help();
  EXPECT_NE(key_help().find("\nTRAIN.NUM_GPUS (int)\n    no effect: "), std::string::npos);
  const std::string page = read_file((source_dir() / "docs" / "detection_keys.md").string());
  const std::string mark = "<!-- Generated from here on. -->\n\n";
  ASSERT_NE(page.find(mark), std::string::npos);
  EXPECT_TRUE(page.substr(page.find(mark) + mark.size()) == key_markdown())
      << "docs/detection_keys.md is not what the keys are: run scripts/document_keys.sh";
}

// Prediction does not check training settings.
TEST(MaskRcnnSettings, SizesOfTrainingAreCheckedWhereItTrains) {
  Settings s = with("torchvision", {"PREPROC.TEST_SHORT_EDGE_SIZE=300", "PREPROC.MAX_SIZE=500"});
  s.check();
  expect_error([&] { s.check_training(); }, Fault::config,
               "PREPROC.TRAIN_SHORT_EDGE_SIZE=800: expected at most the longest side, PREPROC.MAX_SIZE=");
  apply(s, "PREPROC.TRAIN_SHORT_EDGE_SIZE=300");
  s.check_training();
  expect_error([] { with("torchvision", {"PREPROC.MAX_SIZE=500"}).check(); }, Fault::config,
               "PREPROC.TEST_SHORT_EDGE_SIZE=800: expected at most the longest side, PREPROC.MAX_SIZE=500");
}

TEST(MaskRcnnSettings, RefusesConflictingSettings) {
  expect_error([] { with("tensorpack", {"RPN.NEGATIVE_ANCHOR_THRESH=0.8"}).check(); }, Fault::config,
               "expected at most RPN.POSITIVE_ANCHOR_THRESH, 0.7");
  expect_error(
      [] {
        with("tensorpack", {"FPN.MRCNN_HEAD_FUNC=maskrcnn_up4conv_gn_head", "MRCNN.HEAD_DIM=100"}).check();
      },
      Fault::config, "expected a multiple of 32");
  expect_error([] { with("torchvision", {"BACKBONE.NORM=BN"}).check(); }, Fault::config, "BACKBONE.FREEZE_AFFINE");
}

// A non-default value for each key.
TEST(MaskRcnnSettings, DescriptionsAreRoundTrips) {
  const std::vector<std::string> changes = {"TRAIN.LR_SCHEDULE=\"3x\"",
                                            "TRAIN.STEPS_PER_EPOCH=1875",
                                            "TRAIN.BASE_LR=0.1",
                                            "TRAIN.WARMUP_INIT_LR=0.00041666",
                                            "DATA.TRAIN=()",
                                            "DATA.CLASS_NAMES=[\"it's\", 'b']",
                                            "RPN.FG_RATIO=0.33",
                                            "RPN.BATCH_PER_IM=100",
                                            "RPN.MIN_SIZE=0.1",
                                            "PREPROC.MAX_SIZE=999",
                                            "PREPROC.HUE=0.1",
                                            "PREPROC.PREDEFINED_PADDING=True",
                                            "FPN.BOXCLASS_HEAD_FUNC=boxclass_4conv1fc_head",
                                            "MODE_FPN=False",
                                            "BACKBONE.NORM=GN",
                                            "CASCADE.IOUS=[0.4, 0.5, 0.61]",
                                            "CASCADE.BBOX_REG_WEIGHTS=[[1, 2, 3, 4], [5, 6, 7, 8.1], [9, 10, 11, 12]]",
                                            "RPN.HEAD_DIM=77",
                                            "RPN.TEST_PRE_NMS_TOPK=99",
                                            "RPN.ANCHOR_RATIOS=[0.3, 1, 3.1]"};
  for (const models::DetectorPreset& preset : models::detector_presets()) {
    for (const bool changed : {false, true}) {
      const auto described = with(preset.name, changed ? changes : std::vector<std::string>{}).described();
      std::vector<std::string> forwards;
      for (const auto& [key, value] : described) forwards.push_back(key + "=" + value);
      EXPECT_EQ(with(preset.name, forwards).described(), described);
      const std::vector<std::string> backwards(forwards.rbegin(), forwards.rend());
      EXPECT_EQ(with(preset.name, backwards).described(), described);
    }
  }
  EXPECT_EQ(with("tensorpack", changes).described().at("TRAIN.LR_SCHEDULE"), "[420000, 500000, 540000]");
  EXPECT_EQ(with("tensorpack", changes).described().at("TRAIN.WARMUP_INIT_LR"), "0.00041666");
}

TEST(MaskRcnnSettings, KeysAreListedOnce) {
  std::vector<std::string> names;
  for (const ConfigKey& key : config_keys()) names.push_back(key.name);
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

TEST(MaskRcnnSettings, FilesOfKeys) {
  const TempDirectory folder;
  const std::string path = (folder.path() / "a.cfg").string();
  write_file(path, "# a comment\n\n  TRAIN.BASE_LR = 0.02   # another\r\nBACKBONE.WEIGHTS=/a#b.npz\nTRAINER=horovod");
  Settings settings = preset_settings("tensorpack");
  EXPECT_EQ(apply_file(settings, path).size(), 1u);
  EXPECT_EQ(settings.rate.base_rate, 0.02);
  EXPECT_EQ(settings.weights, "/a#b.npz");
  write_file(path, "TRAIN.BASE_LR=0.02\n\nnonsense\n");
  expect_error([&] { apply_file(settings, path); }, Fault::config,
               "a.cfg, line 3: expected KEY=VALUE, found 'nonsense'");
  expect_error([&] { apply_file(settings, path + "x"); }, Fault::config, "a.cfgx");
}

}  // namespace
}  // namespace dtrain::mask_rcnn
