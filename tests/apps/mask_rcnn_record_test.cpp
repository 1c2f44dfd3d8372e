// Detector weights are evaluated with their recorded training settings, wherever they are stored.
#include <filesystem>

#include "apps/detection/match_categories.h"
#include "apps/detection/recorded_categories.h"
#include "apps/mask_rcnn/datasets.h"
#include "apps/mask_rcnn/flags.h"
#include "apps/mask_rcnn/former_versions.h"
#include "dtrain/distributed/group.h"
#include "dtrain/train/checkpoint.h"
#include "dtrain/train/weights.h"
#include "tests/files.h"
#include "tests/testing.h"

namespace dtrain::mask_rcnn {
namespace {

class RecordedDetector : public testing::Test {
 protected:
  RecordedDetector() : context_(make_cpu_context({.threads = 1})), store_(*context_) {
    store_.add("w", {2}, Init::constant(1));
    store_.allocate(1);
    for (const char* key :
         {"PREPROC.TRAIN_SHORT_EDGE_SIZE=64", "PREPROC.TEST_SHORT_EDGE_SIZE=64", "PREPROC.MAX_SIZE=96",
          "FPN.NUM_CHANNEL=16", "BACKBONE.STRIDE_1X1=True", "DATA.BASEDIR=/data/of/training", "TRAIN.BASE_LR=0.5"})
      apply(trained_, key);
  }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string weights_with(const WeightsRecord& record) const {
    save_weights(store_, path("w.safetensors"), 0, record);
    return path("w.safetensors");
  }

  // As read by a program.
  Settings settings(const Arguments& words, ModelFlags::Use use = ModelFlags::Use::as_trained,
                    const std::vector<std::string>& continued = {}) {
    Arguments argv = {"x"};
    argv.insert(argv.end(), words.begin(), words.end());
    ModelFlags model;
    model.continued = continued;
    cli::FlagSet flags("x", "", "");
    model.declare(flags);
    flags.parse(ModelFlags::take_config(argv, model.assignments));
    notices_.clear();
    return model.settings(flags, notices_, use);
  }
  void expect_refused(const Arguments& words, const std::string& message) {
    expect_error([&] { settings(words); }, Fault::config, message);
  }

  TempDirectory folder_;
  std::unique_ptr<Context> context_;
  ParameterStore store_;
  Settings trained_ = preset_settings("tensorpack");
  std::vector<std::string> notices_;
};

TEST_F(RecordedDetector, TheFileSaysHowItWasTrained) {
  const std::string file = weights_with(trained_.recorded_with_weights());
  const Settings found = settings({"--load=" + file, "--data_dir=here"});
  EXPECT_EQ(found.recorded_with_weights(), trained_.recorded_with_weights());
  EXPECT_EQ(found.preset, "tensorpack");
  EXPECT_EQ(found.data.base_dir, "here");
  EXPECT_EQ(found.rate.base_rate, preset_settings("tensorpack").rate.base_rate);
  EXPECT_EQ(found.weights, file);
  EXPECT_TRUE(notices_.empty());
  EXPECT_EQ(settings({"--config", "BACKBONE.WEIGHTS=" + file}).preset, "tensorpack");
}

TEST_F(RecordedDetector, ContradictionsAreRefused) {
  const std::string file = weights_with(trained_.recorded_with_weights()), load = "--load=" + file;
  expect_refused({load, "--preset=torchvision"},
                 "--preset=torchvision: " + file + " was trained with the preset tensorpack");
  expect_refused({load, "--config", "BACKBONE.STRIDE_1X1=False"},
                 "BACKBONE.STRIDE_1X1=False: " + file + " was trained with True");
  expect_refused({load, "--config", "PREPROC.PIXEL_MEAN=[1,2,3]"}, "was trained with [");
  // Equal settings and evaluation-only settings may be given.
  const Settings found =
      settings({load, "--preset=tensorpack", "--config", "FPN.NUM_CHANNEL=16", "TEST.RESULT_SCORE_THRESH=0.25",
                "PREPROC.TEST_SHORT_EDGE_SIZE=80", "DATA.VAL=other"});
  EXPECT_EQ(found.detector.detection.score_threshold, 0.25f);
  EXPECT_EQ(found.data.evaluation_resize.max_short_edge, 80);
}

TEST_F(RecordedDetector, ACheckpointOrATrainDirStandsForItsWeights) {
  TrainState state{.step = 3, .identity = trained_.model_identity(), .settings = trained_.described()};
  const std::string run = path("run"), step = run + "/checkpoints/step-3";
  Checkpointer(store_, {.train_dir = run, .asynchronous = false}, {}).save(state);
  for (const std::string& load : {run, step, step + "/model.safetensors"}) {
    const Settings found = settings({"--load=" + load});
    EXPECT_EQ(found.weights, step + "/model.safetensors");
    EXPECT_EQ(found.recorded_with_weights(), trained_.recorded_with_weights()) << load;
    EXPECT_EQ(found.data.base_dir, "");
  }
  expect_error([&] { settings({"--load=" + folder_.path().string()}); }, Fault::checkpoint,
               "neither a checkpoint nor a train_dir with a complete one");
}

TEST_F(RecordedDetector, OrientationIsRecorded) {
  ASSERT_EQ(trained_.data.orientation, data::Orientation::apply);
  trained_.data.orientation = data::Orientation::ignore;
  const std::string load = "--load=" + weights_with(trained_.recorded_with_weights());
  EXPECT_EQ(settings({load}).data.orientation, data::Orientation::ignore);
  EXPECT_EQ(settings({load, "--exif_orientation=apply"}).data.orientation, data::Orientation::apply);
  EXPECT_EQ(trained_.described().at("PREPROC.EXIF_ORIENTATION"), "ignore") << "a run that differs is told so";
}

TEST_F(RecordedDetector, ADamagedRecordNamesTheFile) {
  const WeightsRecord record = trained_.recorded_with_weights();
  const auto refused = [&](const std::string& key, const std::string& value, const std::string& part) {
    WeightsRecord damaged = record;
    damaged[key] = value;
    const std::string file = weights_with(damaged);
    expect_error([&] { settings({"--load=" + file}); }, Fault::checkpoint, file + ": " + part);
  };
  refused("RPN.HEAD_DIM", "x", "RPN.HEAD_DIM=x: ");
  refused("PRESET", "other", "PRESET=other: ");
  refused("RPN.NEGATIVE_ANCHOR_THRESH", "0.9", "what is recorded: RPN.NEGATIVE_ANCHOR_THRESH=");
}

// A version with float32 scales, rounded pixels, and epochs of COCO's length.
TEST_F(RecordedDetector, ARunOfAnOlderVersionKeepsItsConventions) {
  trained_ = preset_settings("torchvision");
  TrainState state{.step = 3, .identity = trained_.model_identity(), .settings = trained_.described()};
  for (const char* unknown : {"PREPROC.RESIZE_SCALE_DTYPE", "PREPROC.ROUND_PIXELS", "PREPROC.EXIF_ORIENTATION"})
    ASSERT_EQ(state.settings.erase(unknown), 1u) << unknown;
  cli::TrainingFlags flags;
  flags.checkpoints.train_dir = path("run");
  Checkpointer(store_, {.train_dir = flags.checkpoints.train_dir, .asynchronous = false}, {}).save(state);
  const auto group = make_single_group();
  std::vector<std::string> told;
  const std::vector<std::string> continued = continued_conventions(flags, *group, told);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_NE(told[0].find("older version; the run keeps its PREPROC.EXIF_ORIENTATION=ignore "
                         "PREPROC.RESIZE_SCALE_DTYPE=float32 PREPROC.ROUND_PIXELS=True TRAIN.IMAGES_PER_EPOCH=117266"),
            std::string::npos)
      << told[0];
  Settings found = settings({"--config", "PREPROC.EXIF_ORIENTATION=apply"}, ModelFlags::Use::to_train, continued);
  EXPECT_EQ(found.data.orientation, data::Orientation::apply) << "what is given changes it";
  EXPECT_EQ(found.data.training_resize.rounding, data::SizeRounding::down_single);
  EXPECT_TRUE(found.data.training_resize.rounds_pixels && found.data.evaluation_resize.rounds_pixels);
  found.fit_epoch(40, /*are_coco=*/false, 2);
  EXPECT_EQ(found.epoch_steps(2), 58'633);
  EXPECT_TRUE(settings({"--load=" + flags.checkpoints.train_dir}).data.evaluation_resize.rounds_pixels)
      << "evaluated as trained";

  flags.checkpoints.train_dir = path("new");
  state.settings = found.described();
  Checkpointer(store_, {.train_dir = flags.checkpoints.train_dir, .asynchronous = false}, {}).save(state);
  EXPECT_TRUE(continued_conventions(flags, *group, told).empty());
  flags.checkpoints.train_dir = path("none");
  EXPECT_TRUE(continued_conventions(flags, *group, told).empty());
}

TEST_F(RecordedDetector, ForeignWeightsUseTheGivenPreset) {
  const std::string load = "--load=" + weights_with({{"model", "resnet50"}});
  EXPECT_EQ(settings({load, "--preset=aws"}).preset, "aws");
  EXPECT_TRUE(notices_.empty());
  EXPECT_EQ(settings({load}).preset, "torchvision");
  ASSERT_EQ(notices_.size(), 1u);
  EXPECT_NE(notices_[0].find("records no conventions; using --preset=torchvision"), std::string::npos);
}

TEST_F(RecordedDetector, ATrainingMayDiffer) {
  const std::string load = "--load=" + weights_with(trained_.recorded_with_weights());
  EXPECT_EQ(settings({load, "--config", "FPN.NUM_CHANNEL=32"}, ModelFlags::Use::to_train).preset, "torchvision");
  ASSERT_EQ(notices_.size(), 1u);
  EXPECT_NE(notices_[0].find("trained with the preset tensorpack, and this run trains with torchvision"),
            std::string::npos);
}

TEST_F(RecordedDetector, CategoriesAreRecorded) {
  const std::vector<data::coco::Category> categories = {{3, "square"}, {90, "Stra\u00dfe \"x\""}};
  const std::string text = detection::categories_text(categories);
  const auto found = detection::recorded_categories(weights_with({{detection::kCategoriesKey, text}}));
  ASSERT_EQ(found.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(found[i].id, categories[i].id);
    EXPECT_EQ(found[i].name, categories[i].name);
  }
  EXPECT_TRUE(detection::recorded_categories(weights_with({})).empty());
  for (const char* bad : {"[1]", "{}[", R"([{"id":"x","name":"y"}])"})
    expect_error(
        [&] {
          detection::recorded_categories(weights_with({{detection::kCategoriesKey, bad}}));
        },
        Fault::checkpoint, "w.safetensors: categories");
}

// Also with a file of category names.
TEST_F(RecordedDetector, CategoriesOfAFileAreMatchedToTheClasses) {
  const std::string file =
      weights_with({{detection::kCategoriesKey, detection::categories_text({{1, "cat"}, {2, "dog"}})}});
  const auto known = [&](const std::string& categories, const std::vector<std::string>& classes = {}) {
    write_file(path("a.json"), R"({"images": [], "annotations": [], "categories": )" + categories + "}");
    return detection::known_categories(file, path("a.json"), classes, notices_);
  };
  const auto swapped = known(R"([{"id": 1, "name": "dog"}, {"id": 2, "name": "cat"}])");
  ASSERT_EQ(swapped.size(), 2u);
  EXPECT_EQ(swapped[0].name, "cat");
  EXPECT_EQ(swapped[0].id, 2);
  ASSERT_EQ(notices_.size(), 1u);
  EXPECT_NE(notices_[0].find("category cat has the id 2, and 1 in the training data"), std::string::npos);
  expect_error([&] { known(R"([{"id": 1, "name": "dog"}, {"id": 2, "name": "cow"}])"); }, Fault::data,
               "a.json: category 1 of the detector is 1 (dog), expected 1 (cat)");
  const std::string more = R"([{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}, {"id": 3, "name": "cow"}])";
  EXPECT_EQ(known(more, {"cat", "dog"}).size(), 2u);
  EXPECT_EQ(detection::known_categories(file, "", {}, notices_).at(1).name, "dog");
}

// The order of ids may differ between evaluation and training data.
TEST_F(RecordedDetector, DataIsMatchedToTheClassesThatWereLearnt) {
  const std::string learnt = detection::categories_text({{2, "red"}, {7, "blue"}});
  const std::string load = "--load=" + weights_with({{detection::kCategoriesKey, learnt}});
  std::filesystem::create_directories(folder_ / "annotations");
  std::filesystem::create_directories(folder_ / "val");
  write_file(path("val/a.png"), "never decoded");
  const auto open = [&](const std::string& second) {
    write_file(path("annotations/instances_val.json"),
               R"({"images": [{"id": 1, "file_name": "a.png", "width": 8, "height": 8}], "annotations": [],)"
               R"("categories": [{"id": 1, "name": "blue"}, {"id": 2, "name": ")" +
                   second + R"("}]})");
    const Settings read = settings({load, "--data_dir=" + folder_.path().string(), "--config", "MODE_MASK=False"});
    return open_validation(read, nullptr, notices_);
  };
  const auto splits = open("red");
  EXPECT_EQ(splits.at(0).images->categories().at(0).name, "red");
  EXPECT_NE(notices_.back().find("category blue has the id 1, and 7 in the training data: matched by name"),
            std::string::npos);
  expect_error([&] { open("green"); }, Fault::data, "category 1 of the detector is 1 (blue), expected 2 (red)");
}

}  // namespace
}  // namespace dtrain::mask_rcnn
