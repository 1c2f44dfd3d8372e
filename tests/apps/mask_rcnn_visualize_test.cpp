// dtrain-mask-rcnn visualize, evaluation gallery, and benchmark.
#include <cmath>
#include <filesystem>
#include <set>

#include <nlohmann/json.hpp>

#include "apps/detection/placed_image.h"
#include "apps/mask_rcnn/annotated_images.h"
#include "apps/mask_rcnn/text.h"
#include "dtrain/data/jpeg.h"
#include "tests/apps/program.h"
#include "tests/data/exif.h"
#include "tests/files.h"
#include "tests/testing.h"

namespace dtrain::mask_rcnn {
namespace {

namespace fs = std::filesystem;
using LookingJson = nlohmann::ordered_json;
using Flags = std::vector<std::string>;

constexpr int kLookedAt = 4, kWidth = 96, kHeight = 64;
constexpr Color kBackground{120, 120, 120};

// A small detector with many false positives.
const Flags kSmallDetector = {"BACKBONE.BOTTLENECK=False",
                              "BACKBONE.RESNET_NUM_BLOCKS=[1,1,1,1]",
                              "BACKBONE.FREEZE_AT=0",
                              "BACKBONE.NORM=BN",
                              "BACKBONE.FREEZE_AFFINE=False",
                              "FPN.NUM_CHANNEL=16",
                              "FPN.FRCNN_FC_HEAD_DIM=32",
                              "MRCNN.HEAD_DIM=16",
                              "FRCNN.BATCH_PER_IM=16",
                              "RPN.BATCH_PER_IM=32",
                              "PREPROC.TRAIN_SHORT_EDGE_SIZE=64",
                              "PREPROC.TEST_SHORT_EDGE_SIZE=64",
                              "PREPROC.MAX_SIZE=96",
                              "TEST.RESULT_SCORE_THRESH=0.01",
                              "TEST.RESULT_SCORE_THRESH_VIS=0.01",
                              "TRAIN.BASE_LR=0.02",
                              "TRAIN.WARMUP=1"};

Flags small_detector(Flags flags) {
  flags.push_back("--device=cpu");
  flags.push_back("--config");
  flags.insert(flags.end(), kSmallDetector.begin(), kSmallDetector.end());
  return flags;
}

Rectangle object_of(int image) { return {10 + 5 * image, 20, 30, 24}; }
std::string name_of(int image) { return "image " + std::to_string(image) + ".png"; }

// A rectangle on grey in each image, alternately red and blue.
void write_rectangles(const std::string& folder) {
  for (const char* part : {"/annotations", "/train", "/val"}) fs::create_directories(folder + part);
  LookingJson truth = {{"images", LookingJson::array()}, {"annotations", LookingJson::array()}};
  truth["categories"] = {{{"id", 2}, {"name", "red"}}, {{"id", 7}, {"name", "blue"}}};
  for (int i = 0; i < kLookedAt; ++i) {
    const Rectangle area = object_of(i);
    Canvas canvas(kWidth, kHeight, kBackground);
    canvas.fill(area, i % 2 == 0 ? Color{250, 20, 20} : Color{20, 20, 250});
    for (const char* split : {"/train/", "/val/"}) write_png(folder + (split + name_of(i)), canvas.image().view());
    const int right = area.right(), bottom = area.bottom();
    truth["images"].push_back({{"id", i}, {"file_name", name_of(i)}, {"width", kWidth}, {"height", kHeight}});
    truth["annotations"].push_back(
        {{"id", 10 + i},
         {"image_id", i},
         {"category_id", i % 2 == 0 ? 2 : 7},
         {"bbox", {area.x, area.y, area.width, area.height}},
         {"area", area.width * area.height},
         {"iscrowd", 0},
         {"segmentation", {{area.x, area.y, right, area.y, right, bottom, area.x, bottom}}}});
  }
  for (const char* split : {"train", "val"})
    write_file(folder + "/annotations/instances_" + split + ".json", truth.dump());
}

Canvas picture_at(const std::string& path) {
  return Canvas(detection::decode_image(detection::read_image_file(path)).view());
}

// The pixel (x, y) of a panel, as side_by_side() places it.
Color pixel_of_panel(const Canvas& panels, int panel, int x, int y) {
  constexpr int kGap = 6;  // at the scale of small pictures
  return panels.at(kGap + panel * (kWidth + kGap) + x, 2 * kGap + cap_height(1) + y);
}

int width_of_panels(int count) { return count * kWidth + (count + 1) * 6; }

// Picture paths of a page, in order.
std::vector<std::string> sources_of(const std::string& page) {
  constexpr std::string_view kBefore = "<img src=\"./";
  std::vector<std::string> sources;
  for (size_t at = page.find(kBefore); at != page.npos; at = page.find(kBefore, at)) {
    at += kBefore.size();
    std::string source = page.substr(at, page.find('"', at) - at);
    for (size_t space; (space = source.find("%20")) != source.npos;) {
      source.erase(space, 2);
      source[space] = ' ';
    }
    sources.push_back(source);
  }
  return sources;
}

// Expects one line on stderr and the exit code.
void expect_refused(const Flags& flags, int code, const std::string& part) {
  const ProgramResult result = run_program("dtrain-mask-rcnn", flags);
  EXPECT_EQ(result.code, code) << result.err;
  EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
  EXPECT_EQ(std::ranges::count(result.err, '\n'), 1) << result.err;
}

class MaskRcnnVisualize : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    scratch_ = std::make_unique<TempDirectory>();
    write_rectangles(path("data"));
    const ProgramResult trained = run_program(
        "dtrain-mask-rcnn", small_detector({"train", "--data_dir=" + path("data"), "--train_dir=" + path("run"),
                                            "--batch_size=2", "--num_batches=1"}));
    ASSERT_EQ(trained.code, 0) << trained.err;
  }
  static void TearDownTestSuite() { scratch_.reset(); }

  static std::string path(const std::string& name) { return (*scratch_ / name).string(); }
  static std::string weights() { return path("run/checkpoints/step-1/model.safetensors"); }
  static Flags with_model(Flags flags) {
    flags.push_back("--load=" + weights());
    return small_detector(std::move(flags));
  }

  static inline std::unique_ptr<TempDirectory> scratch_;
};

TEST_F(MaskRcnnVisualize, DrawsTruthProposalsAndResultsSideBySide) {
  const ProgramResult drawn =
      run_program("dtrain-mask-rcnn", with_model({"visualize", "--data_dir=" + path("data"), "--images=3",
                                                  "--proposals=5", "--output=" + path("looked/at")}));
  ASSERT_EQ(drawn.code, 0) << drawn.err;
  EXPECT_EQ(std::ranges::count(drawn.out, '\n'), 3) << drawn.out;
  EXPECT_FALSE(fs::exists(path("looked/at/" + name_of(3))));
  for (int i = 0; i < 3; ++i) {
    const Canvas panels = picture_at(path("looked/at/" + name_of(i)));
    EXPECT_EQ(panels.width(), width_of_panels(4));
    const Rectangle object = object_of(i);
    const Color of_class = color_of_class(i % 2 + 1);
    EXPECT_EQ(pixel_of_panel(panels, 0, object.x + 5, object.bottom() - 1), of_class) << i;  // the edge of its box
    EXPECT_EQ(pixel_of_panel(panels, 0, 2, 60), kBackground);
    int grey = 0, colored = 0;
    for (int y = 0; y < kHeight; ++y)
      for (int x = 0; x < kWidth; ++x) {
        grey += pixel_of_panel(panels, 1, x, y) == color_of_class(0);
        colored += pixel_of_panel(panels, 2, x, y) == of_class;
      }
    EXPECT_GT(grey, 50) << i;
    EXPECT_GT(colored, 20) << i;
  }
}

TEST_F(MaskRcnnVisualize, VisualizeReportsErrors) {
  const std::string data = "--data_dir=" + path("data"), output = "--output=" + path("refused");
  expect_refused(small_detector({"visualize", data, output, "--load=" + path("none.safetensors")}), 5, "none.safe");
  expect_refused(with_model({"visualize", data}), 1, "--output");
  expect_refused(with_model({"visualize", data, output, "--split=val2099"}), 2, "instances_val2099.json");
  expect_refused(with_model({"visualize", data, "--output=/proc/none"}), 6, "/proc/none");
  expect_refused(with_model({"visualize", data, "--output=" + weights()}), 1, "model.safetensors");
  fs::copy(path("data"), path("damaged"), fs::copy_options::recursive);
  write_file(path("damaged/val/" + name_of(1)), "text\n");
  const Canvas other(kWidth + 1, kHeight, kBackground);
  write_png(path("damaged/val/" + name_of(2)), other.image().view());
  const ProgramResult damaged = run_program(
      "dtrain-mask-rcnn", with_model({"visualize", "--data_dir=" + path("damaged"), "--output=" + path("rest")}));
  EXPECT_EQ(damaged.code, 2);
  EXPECT_EQ(std::ranges::count(damaged.err, '\n'), 2) << damaged.err;
  EXPECT_NE(damaged.err.find(path("damaged/val/" + name_of(1)) + ": "), std::string::npos) << damaged.err;
  EXPECT_NE(damaged.err.find("97x64 pixels; its annotations expect 96x64"), std::string::npos) << damaged.err;
  EXPECT_TRUE(fs::exists(path("rest/" + name_of(3))));
}

TEST_F(MaskRcnnVisualize, BenchmarkReportsTimesOfAllParts) {
  const ProgramResult timed =
      run_program("dtrain-mask-rcnn", with_model({"predict", "--benchmark", "--num_batches=3", "--num_warmup_batches=1",
                                                  "--image_width=80", "--image_height=50", "--json"}));
  ASSERT_EQ(timed.code, 0) << timed.err;
  const LookingJson report = LookingJson::parse(timed.out);
  EXPECT_EQ(report["runs"], 3);
  EXPECT_EQ(report["network_sizes"], LookingJson({"96 x 64"}));  // 80 x 50 at a short edge of 64 would be too long
  EXPECT_GT(report["images_per_sec"], 0);
  EXPECT_GT(report["peak_tensor_bytes"], 0);
  EXPECT_GE(report["peak_resident_bytes"], report["peak_tensor_bytes"]);
  double parts = 0;
  for (const char* part : {"decode_and_resize", "backbone", "fpn", "rpn", "proposals", "box_head", "boxes", "mask_head",
                           "download_and_paste"}) {
    const LookingJson& times = report["parts_ms"][part];
    EXPECT_LE(times["median"], times["p90"]) << part;
    EXPECT_LE(times["p90"], times["p99"]) << part;
    parts += times["mean"].get<double>();
  }
  EXPECT_NEAR(parts, report["latency_ms"]["mean"].get<double>(), 0.01);

  const ProgramResult lines =
      run_program("dtrain-mask-rcnn", with_model({"predict", "--benchmark", "--num_batches=2", "--num_warmup_batches=0",
                                                  path("data/val/" + name_of(0)), path("data/val/" + name_of(1))}));
  ASSERT_EQ(lines.code, 0) << lines.err;
  for (const char* part :
       {"2 files", "backbone", "box head", "whole image", "median", "p99", "images/s", "Peak memory"})
    EXPECT_NE(lines.out.find(part), std::string::npos) << part << "\n" << lines.out;
}

// A portrait photo with an EXIF orientation: its annotations may state either size.
TEST_F(MaskRcnnVisualize, ImagesAreTurnedAsTheirAnnotationsAre) {
  using data::Orientation;
  const std::vector<std::byte> jpeg =
      with_orientation(data::encode_jpeg(Canvas(kWidth, kHeight, kBackground).image().view()), 6);
  fs::create_directories(path("turned"));
  write_file(path("turned/t.jpg"), std::string(reinterpret_cast<const char*>(jpeg.data()), jpeg.size()));
  const data::coco::AnnotatedImage turned{.file_name = "t.jpg", .width = kHeight, .height = kWidth},
      stored{.file_name = "t.jpg", .width = kWidth, .height = kHeight};
  EXPECT_EQ(read_annotated_image(path("turned"), turned, Orientation::apply).width, kHeight);
  EXPECT_EQ(read_annotated_image(path("turned"), stored, Orientation::apply).width, kWidth);
  EXPECT_EQ(read_annotated_image(path("turned"), stored, Orientation::ignore).width, kWidth);

  write_file(path("turned.json"),
             R"({"images": [{"id": 1, "file_name": "t.jpg", "width": 64, "height": 96}], "annotations": [{"id": 1,)"
             R"("image_id": 1, "category_id": 1, "area": 400, "bbox": [8, 8, 20, 20], "iscrowd": 0}],)"
             R"("categories": [{"id": 1, "name": "x"}]})");
  write_file(path("nothing.json"), "[]");
  Flags eval = {"eval", "--annotations=" + path("turned.json"), "--results=" + path("nothing.json"),
                "--images=" + path("turned"), "--gallery=" + path("of turned")};
  expect_refused(eval, 2, "its annotations expect 64x96; --exif_orientation=apply rotates");
  eval.emplace_back("--exif_orientation=apply");
  const ProgramResult scored = run_program("dtrain-mask-rcnn", eval);
  EXPECT_EQ(scored.code, 0) << scored.err;

  const ProgramResult timed =
      run_program("dtrain-mask-rcnn", with_model({"predict", "--benchmark", "--num_batches=1", "--num_warmup_batches=0",
                                                  "--json", "--exif_orientation=apply", path("turned/t.jpg")}));
  ASSERT_EQ(timed.code, 0) << timed.err;
  EXPECT_EQ(LookingJson::parse(timed.out)["network_sizes"], LookingJson({"64 x 96"}));
}

TEST_F(MaskRcnnVisualize, BenchmarkReportsErrors) {
  const std::string text = path("data/annotations/instances_val.json");
  expect_refused(with_model({"predict", "--benchmark", text}), 2, text + ": ");
  expect_refused(with_model({"predict", "--num_batches=3", path("data/val/" + name_of(0))}), 1, "--benchmark");
  expect_refused(with_model({"predict", "--benchmark", "--output=" + path("refused")}), 1, "--output");
}

// Another program's results: image 0 correct, image 1 with one false positive, image 2 with the wrong class, image 3
// without detections. Low scores are ignored.
std::string results_of_another_program() {
  LookingJson results = LookingJson::array();
  const auto add = [&](int image, int category, const Rectangle& area, double score) {
    results.push_back({{"image_id", image},
                       {"category_id", category},
                       {"bbox", {area.x, area.y, area.width, area.height}},
                       {"score", score}});
  };
  add(0, 2, object_of(0), 0.9);
  add(0, 2, {60, 2, 20, 10}, 0.3);
  add(1, 7, object_of(1), 0.8);
  add(1, 7, {60, 2, 20, 10}, 0.7);
  add(2, 7, object_of(2), 0.9);
  return results.dump();
}

TEST_F(MaskRcnnVisualize, GalleryOfResultsHasWorstAndBestImages) {
  write_file(path("results.json"), results_of_another_program());
  const ProgramResult scored =
      run_program("dtrain-mask-rcnn", {"eval", "--annotations=" + path("data/annotations/instances_val.json"), "--json",
                                       "--results=" + path("results.json"), "--images=" + path("data/val"),
                                       "--gallery=" + path("gallery"), "--gallery_images=3"});
  ASSERT_EQ(scored.code, 0) << scored.err;
  EXPECT_EQ(LookingJson::parse(scored.out)["stats"].size(), 12u);
  const std::string page = read_file(path("gallery/index.html"));
  const std::vector<std::string> sources = sources_of(page);
  EXPECT_EQ(sources, (std::vector<std::string>{"pictures/" + name_of(2), "pictures/" + name_of(3),
                                               "pictures/" + name_of(0), "pictures/" + name_of(1)}));
  for (const char* part : {"F1 0.000", "F1 0.667", "F1 1.000", "<b>1</b> false", "<b>1</b> missed",
                           "a score of at "
                           "least 0.50",
                           "IoU of at least 0.5 with its box", "4 of 4 images are ranked", "Box AP", ">red<", ">blue<"})
    EXPECT_NE(page.find(part), std::string::npos) << part;
  EXPECT_EQ(page.find("Mask AP"), std::string::npos);
  for (const std::string& source : sources) {
    const Canvas panels = picture_at(path("gallery/" + source));
    EXPECT_EQ(panels.width(), width_of_panels(2)) << source;
    EXPECT_NE(page.find("width=\"" + std::to_string(panels.width()) + "\""), std::string::npos);
  }
  const Canvas wrong = picture_at(path("gallery/pictures/" + name_of(2)));
  const Rectangle object = object_of(2);
  EXPECT_EQ(pixel_of_panel(wrong, 0, object.x + 5, object.bottom() - 1), color_of_class(1));
  EXPECT_EQ(pixel_of_panel(wrong, 1, object.x + 5, object.bottom() - 1), color_of_class(2));
  int longest = 0;  // of the rows of the label's chip
  for (int y = 0; y < object.y; ++y) {
    int row = 0;
    for (int x = 0; x < kWidth; ++x) row += pixel_of_panel(wrong, 1, x, y) == color_of_class(2);
    longest = std::max(longest, row);
  }
  EXPECT_GT(longest, text_width("blue 0.90 (fa", 1));
  const Canvas right = picture_at(path("gallery/pictures/" + name_of(0)));
  EXPECT_EQ(pixel_of_panel(right, 1, 70, 2), kBackground);  // a score below 0.5
}

TEST_F(MaskRcnnVisualize, GalleryOfAModelHasBoxesAndMasks) {
  const ProgramResult scored = run_program(
      "dtrain-mask-rcnn", with_model({"eval", "--data_dir=" + path("data"), "--gallery=" + path("of model")}));
  ASSERT_EQ(scored.code, 0) << scored.err;
  EXPECT_NE(scored.out.find("Gallery:     " + path("of model/index.html")), std::string::npos) << scored.out;
  const std::string page = read_file(path("of model/index.html"));
  const std::vector<std::string> sources = sources_of(page);
  EXPECT_EQ(std::set(sources.begin(), sources.end()).size(), size_t{kLookedAt});
  EXPECT_EQ(sources.size(), size_t{kLookedAt});
  for (const std::string& source : sources) EXPECT_TRUE(fs::exists(path("of model/" + source))) << source;
  for (const char* part : {"Evaluation on val", "Box AP", "Mask AP", "a score of at least 0.01"})
    EXPECT_NE(page.find(part), std::string::npos) << part;
}

TEST_F(MaskRcnnVisualize, GalleryReportsErrors) {
  write_file(path("more.json"), results_of_another_program());
  const Flags eval = {"eval", "--annotations=" + path("data/annotations/instances_val.json"),
                      "--results=" + path("more.json")};
  const auto with = [&](const Flags& more) {
    Flags all = eval;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  expect_refused(with({"--gallery=" + path("refused")}), 1, "--images");
  expect_refused(with({"--images=" + path("data/val")}), 1, "--gallery");
  expect_refused(with({"--gallery=" + path("refused"), "--images=" + path("nowhere")}), 2, "nowhere/image");
  expect_refused(with({"--gallery=" + path("more.json"), "--images=" + path("data/val")}), 1, "more.json");
  expect_refused(with({"--gallery=/proc/none", "--images=" + path("data/val")}), 6, "/proc/none");
}

}  // namespace
}  // namespace dtrain::mask_rcnn
