// Output files of `dtrain-mask-rcnn train`: TensorBoard events, stats.json and log.log, also after a kill; and settings
// that must match a resumed checkpoint.
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <sstream>

#include "apps/mask_rcnn/canvas.h"
#include "apps/mask_rcnn/config_keys.h"
#include "dtrain/data/png.h"
#include "tests/apps/mask_rcnn_fixture.h"
#include "tests/event_reader.h"
#include "tests/files.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

class MaskRcnnOutputs : public MaskRcnn {
 protected:
  // Epochs of two steps, each with an evaluation.
  Words words(const std::string& run, int steps, const Words& keys = {}) const {
    Words all = joined_words(train_words(run, steps), {"TRAIN.STEPS_PER_EPOCH=2", "TRAIN.EVAL_PERIOD=1"});
    all.insert(all.begin() + 1, "--throughput_log_freq=2");
    return joined_words(all, keys);
  }
  ProgramResult train(const std::string& run, int steps, const Words& keys = {}) const {
    return run_program("dtrain-mask-rcnn", words(run, steps, keys));
  }
  Json stats(const std::string& run) const { return Json::parse(read_file(path(run) + "/stats.json")); }
  std::string log(const std::string& run) const { return read_file(path(run) + "/log.log"); }
};

std::multiset<std::string> sorted_lines(const std::string& text) {
  std::multiset<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.insert(line);
  return lines;
}

const std::set<std::string> kLosses = {"rpn_losses/label_loss",       "rpn_losses/box_loss",
                                       "fastrcnn_losses/label_loss",  "fastrcnn_losses/box_loss",
                                       "maskrcnn_loss/maskrcnn_loss", "wd_cost"};

std::set<std::string> expected_tags() {
  std::set<std::string> tags = kLosses;
  for (const char* tag :
       {"total_cost", "learning_rate", "Throughput/MeanDuration", "Throughput/MeanThroughput",
        "Throughput/MeanEpochThroughput", "Throughput/EpochWallClockDuration", "Throughput/CallbackOverheadDuration"})
    tags.insert(tag);
  for (const std::string kind : {"bbox", "segm"})
    for (const std::string name : {"IoU=0.5:0.95", "IoU=0.5", "IoU=0.75", "small", "medium", "large"})
      tags.insert("val-mAP(" + kind + ")/" + name);
  return tags;
}

TEST_F(MaskRcnnOutputs, ScalarsHaveTensorPacksNames) {
  const ProgramResult result = train("run", 4);
  ASSERT_EQ(result.code, 0) << result.err;
  ASSERT_EQ(event_files_in(path("run")).size(), 1u);
  auto shown = shown_scalars(path("run"));
  std::set<std::string> tags;
  for (const auto& [tag, steps] : shown) tags.insert(tag);
  EXPECT_EQ(tags, expected_tags());
  for (uint64_t step = 1; step <= 4; ++step) {
    float sum = 0;
    for (const std::string& loss : kLosses) sum += shown[loss].at(step);
    EXPECT_NEAR(shown["total_cost"].at(step), sum, 1e-5) << step;
  }
  EXPECT_NEAR(shown["learning_rate"].at(4), 0.02 * 2 / 16, 1e-9);
  EXPECT_EQ(shown["val-mAP(bbox)/small"].size(), 2u);

  const Json rows = stats("run");
  ASSERT_EQ(rows.size(), 2u);
  for (const uint64_t epoch : {1, 2}) {
    const Json& row = rows[epoch - 1];
    EXPECT_EQ(row["epoch_num"], epoch);
    EXPECT_EQ(row["global_step"], 2 * epoch);
    for (const std::string& tag : expected_tags()) EXPECT_TRUE(row.contains(tag)) << tag;
    EXPECT_EQ(row.size(), expected_tags().size() + 2);
    for (const std::string tag : {"rpn_losses/box_loss", "total_cost"})
      EXPECT_NEAR(row[tag], (shown[tag].at(2 * epoch - 1) + shown[tag].at(2 * epoch)) / 2, 1e-5) << tag;
    EXPECT_EQ(row["learning_rate"].get<float>(), shown["learning_rate"].at(2 * epoch));
    EXPECT_EQ(row["val-mAP(segm)/IoU=0.5"].get<float>(), shown["val-mAP(segm)/IoU=0.5"].at(2 * epoch));
  }
}

// Whether a pixel has this colour.
bool has_colour(const std::string& png, mask_rcnn::Color colour) {
  data::PngDecoder decoder;
  const data::ImageInfo info = decoder.open(std::as_bytes(std::span(png)));
  const data::ImageView image = decoder.decode({0, 0, info.width, info.height});
  for (int y = 0; y < image.height; ++y)
    for (int x = 0; x < image.width; ++x) {
      const uint8_t* pixel = image.row(y) + 3 * x;
      if (mask_rcnn::Color{pixel[0], pixel[1], pixel[2]} == colour) return true;
    }
  return false;
}

TEST_F(MaskRcnnOutputs, SummariesShowGradientsAndImagesWithTheirObjects) {
  Words arguments = words("run", 2);
  arguments.insert(arguments.begin() + 1, {"--summary_verbosity=3", "--save_summaries_steps=2"});
  const ProgramResult result = run_program("dtrain-mask-rcnn", arguments);
  ASSERT_EQ(result.code, 0) << result.err;
  size_t shown = 0;
  std::string configuration;
  for (const ReadEvent& event : read_events(event_files_in(path("run")).at(0))) {
    for (const auto& [tag, text] : event.texts) configuration += text;
    if (event.histograms.empty()) continue;
    ++shown;
    EXPECT_EQ(event.step, 2u);
    EXPECT_EQ(event.histograms.at("roi_heads.mask_predictor.mask_fcn_logits.bias/gradients").num, 3);
    EXPECT_TRUE(event.histograms.contains("rpn.head.cls_logits.weight"));
    ASSERT_EQ(event.images.size(), 2u);
    for (const auto& [tag, image] : event.images) {
      EXPECT_TRUE(has_colour(image.png, mask_rcnn::color_of_class(1)) ||
                  has_colour(image.png, mask_rcnn::color_of_class(2)))
          << tag;
      // Masks tint the objects.
      EXPECT_FALSE(has_colour(image.png, {250, 20, 20}) || has_colour(image.png, {20, 20, 250})) << tag;
    }
  }
  EXPECT_EQ(shown, 1u);
  EXPECT_NE(configuration.find("| MRCNN.HEAD_DIM | 16 |"), std::string::npos) << configuration;
}

TEST_F(MaskRcnnOutputs, TheLogHasEveryLine) {
  const ProgramResult result = train("run", 4, {"DATA.NUM_WORKERS=3"});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_NE(result.err.find("note: DATA.NUM_WORKERS"), std::string::npos);
  EXPECT_EQ(sorted_lines(log("run")), sorted_lines(result.out + result.err));
  for (const char* part : {"[ThroughputTracker] Over last 2 steps, MeanDuration=", " seconds\n",
                           "[ThroughputTracker] Over last 2 steps, MeanThroughput=", " items/sec\n",
                           "[ThroughputTracker] Over last epoch, MeanEpochThroughput: ",
                           "[ThroughputTracker] Over last epoch, EpochWallClockDuration: ",
                           "[ThroughputTracker] Over last epoch, CallbackOverheadDuration: "})
    EXPECT_NE(result.out.find(part), std::string::npos) << part;
}

// Evaluates only at the end: a pending result is lost when the run is killed.
TEST_F(MaskRcnnOutputs, KilledRunResumesInTheSameFiles) {
  const Words at_end = {"TRAIN.EVAL_PERIOD=0"};
  Program killed("dtrain-mask-rcnn", words("run", 1000, at_end));
  ASSERT_TRUE(killed.wait_for("step 5/"));
  killed.signal(SIGKILL);
  EXPECT_EQ(killed.finish().code, 128 + SIGKILL);
  const std::string first = event_files_in(path("run")).at(0), before = log("run");
  const std::string events = read_file(first);
  write_file(first, events + events.substr(0, 20));  // an incomplete record
  const size_t last_row = stats("run").back()["global_step"];

  const int steps = static_cast<int>(last_row) + 2;
  const ProgramResult rest = train("run", steps, at_end), whole = train("whole", steps, at_end);
  ASSERT_EQ(rest.code, 0) << rest.err;
  ASSERT_EQ(whole.code, 0) << whole.err;
  EXPECT_NE(rest.out.find("Restored step "), std::string::npos) << rest.out;
  EXPECT_EQ(event_files_in(path("run")).size(), 2u);
  auto shown = shown_scalars(path("run")), expected = shown_scalars(path("whole"));
  for (const std::string tag : {"total_cost", "learning_rate", "maskrcnn_loss/maskrcnn_loss", "val-mAP(bbox)/IoU=0.5"})
    EXPECT_EQ(shown[tag], expected[tag]) << tag;
  Json rows = stats("run"), whole_rows = stats("whole");
  for (Json* all : {&rows, &whole_rows})
    for (Json& row : *all)
      for (const std::string& tag : expected_tags())
        if (tag.starts_with("Throughput/")) row.erase(tag);
  EXPECT_EQ(rows.size(), static_cast<size_t>(steps) / 2);
  EXPECT_EQ(nlohmann::json(rows), nlohmann::json(whole_rows));
  EXPECT_TRUE(log("run").starts_with(before));
  EXPECT_EQ(sorted_lines(log("run").substr(before.size())), sorted_lines(rest.out + rest.err));
}

TEST_F(MaskRcnnOutputs, IncompleteEpochHasAnObject) {
  ASSERT_EQ(train("run", 3).code, 0);
  Json rows = stats("run");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1]["epoch_num"], 2);
  EXPECT_EQ(rows[1]["global_step"], 3);
  EXPECT_TRUE(rows[1].contains("val-mAP(bbox)/IoU=0.5"));
  const std::string bytes = read_file(path("run") + "/stats.json");
  EXPECT_EQ(train("run", 3).code, 0);  // the run is complete
  EXPECT_EQ(read_file(path("run") + "/stats.json"), bytes);
  EXPECT_EQ(event_files_in(path("run")).size(), 1u);
}

TEST_F(MaskRcnnOutputs, ForeignFilesAreKept) {
  struct Case {
    std::string name, text;
    int code;
  };
  const std::vector<Case> cases = {{"stats.json", "dear diary", 2},
                                   {"stats.json", R"({"epoch_num": 1, "global_step": 1})", 2},
                                   {"stats.json", R"([{"epoch_num": 1, "global_step": -1}])", 2},
                                   {"stats.json", "", 2}};
  fs::create_directory(path("run"));
  for (const Case& one : cases) {
    write_file(path("run/" + one.name), one.text);
    const ProgramResult result = train("run", 2);
    EXPECT_EQ(result.code, one.code) << result.err;
    EXPECT_NE(result.err.find("run/" + one.name), std::string::npos) << result.err;
    EXPECT_EQ(read_file(path("run/" + one.name)), one.text);
  }
  fs::remove(path("run/stats.json"));
  for (const std::string name : {"stats.json", "log.log"}) {
    write_file(path("target"), "[]");
    fs::remove(path("run/" + name));
    fs::create_symlink(path("target"), path("run/" + name));
    const ProgramResult linked = train("run", 2);
    EXPECT_EQ(linked.code, 1) << linked.err;
    EXPECT_NE(linked.err.find("run/" + name + ": is a link"), std::string::npos) << linked.err;
    EXPECT_EQ(read_file(path("target")), "[]");
    fs::remove(path("run/" + name));
    ASSERT_EQ(::mkfifo(path("run/" + name).c_str(), 0600), 0);
    EXPECT_EQ(train("run", 2).code, 1) << name;
    fs::remove(path("run/" + name));
  }
  EXPECT_EQ(train("run", 2).code, 0);
}

TEST_F(MaskRcnnOutputs, RefusesAnotherModelAndReportsHarmlessChanges) {
  ASSERT_EQ(train("run", 2).code, 0);
  const ProgramResult other = train("run", 4, {"MRCNN.HEAD_DIM=8", "FPN.NUM_CHANNEL=8", "TRAIN.BASE_LR=0.01"});
  EXPECT_EQ(other.code, 5) << other.err;
  EXPECT_NE(other.err.find("MRCNN.HEAD_DIM: checkpoint 16, this run 8"), std::string::npos) << other.err;
  EXPECT_NE(other.err.find("FPN.NUM_CHANNEL: checkpoint 16, this run 8"), std::string::npos) << other.err;
  EXPECT_EQ(other.err.find("TRAIN.BASE_LR"), std::string::npos) << other.err;
  EXPECT_EQ(std::ranges::count(other.err, '\n'), 1) << other.err;
  Words preset = words("run", 4, {"DATA.TRAIN=train", "DATA.VAL=val"});
  preset.insert(preset.begin() + 1, "--preset=aws");
  const ProgramResult conventions = run_program("dtrain-mask-rcnn", preset);
  EXPECT_EQ(conventions.code, 5) << conventions.err;
  EXPECT_NE(conventions.err.find("PRESET: checkpoint torchvision, this run aws"), std::string::npos) << conventions.err;
  const ProgramResult seed = train("run", 4, {"TRAIN.SEED=7"});
  EXPECT_EQ(seed.code, 5) << seed.err;

  const ProgramResult harmless = train("run", 4, {"TRAIN.BASE_LR=0.01", "TRAIN.EVAL_PERIOD=2"});
  EXPECT_EQ(harmless.code, 0) << harmless.err;
  for (const char* change : {"note: TRAIN.BASE_LR: checkpoint 0.02, this run 0.01\n",
                             "note: TRAIN.EVAL_PERIOD: checkpoint 1, this run 2\n"}) {
    EXPECT_NE(harmless.err.find(change), std::string::npos) << harmless.err;
    EXPECT_NE(log("run").find(change), std::string::npos);
  }
}

// All keys that determine the parameters and the meaning of inputs and outputs.
TEST(MaskRcnnKeys, OfTheModelsIdentity) {
  std::set<std::string> names;
  for (const mask_rcnn::ConfigKey& key : mask_rcnn::config_keys())
    if (key.of_model) names.insert(key.name);
  const std::set<std::string> expected = {"BACKBONE.BOTTLENECK",
                                          "BACKBONE.FREEZE_AFFINE",
                                          "BACKBONE.FREEZE_AT",
                                          "BACKBONE.NORM",
                                          "BACKBONE.STRIDE_1X1",
                                          "BACKBONE.TF_PAD_MODE",
                                          "BACKBONE.RESNET_NUM_BLOCKS",
                                          "CASCADE.BBOX_REG_WEIGHTS",
                                          "CASCADE.IOUS",
                                          "DATA.CLASS_NAMES",
                                          "FPN.CASCADE",
                                          "FPN.FRCNN_HEAD_FUNC",
                                          "FPN.FRCNN_CONV_HEAD_DIM",
                                          "FPN.FRCNN_FC_HEAD_DIM",
                                          "FPN.MRCNN_HEAD_FUNC",
                                          "FPN.NORM",
                                          "FPN.NUM_CHANNEL",
                                          "FRCNN.BBOX_REG_WEIGHTS",
                                          "MODE_FPN",
                                          "MODE_MASK",
                                          "MRCNN.HEAD_DIM",
                                          "PREPROC.PIXEL_MEAN",
                                          "PREPROC.PIXEL_STD",
                                          "RPN.ANCHOR_RATIOS",
                                          "RPN.ANCHOR_SIZES",
                                          "RPN.HEAD_DIM",
                                          "RPN.UNQUANTIZED_ANCHOR"};
  for (const std::string& name : expected) EXPECT_TRUE(names.contains(name)) << name;
  for (const std::string& name : names)
    EXPECT_TRUE(expected.contains(name) || name.starts_with("FPN.BOXCLASS_")) << name;
}

}  // namespace
}  // namespace dtrain
