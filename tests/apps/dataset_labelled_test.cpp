// dtrain-data split, stats and show, on labelled images.
#include <nlohmann/json.hpp>
#include <set>

#include "apps/mask_rcnn/canvas.h"
#include "dtrain/data/image.h"
#include "dtrain/data/png.h"
#include "tests/apps/dataset_fixture.h"

namespace dtrain {
namespace {

using mask_rcnn::Color;

constexpr Color kRed{255, 0, 0}, kBlue{0, 0, 255};

class LabelledData : public DatasetProgram {
 protected:
  void place_image(const std::string& name, int width, int height, Color color) const {
    const mask_rcnn::Canvas canvas(width, height, color);
    place_file(root / name, text_of(data::encode_png(canvas.image().view())));
  }
  data::Image picture(const std::string& name) const {
    const std::string bytes = contents(root / name);
    data::ImageDecoder decoder;
    decoder.open(std::as_bytes(std::span(bytes)));
    const data::ImageView view = decoder.decode();
    data::Image image(view.width, view.height);
    for (int y = 0; y < view.height; ++y)
      std::copy_n(view.row(y), 3 * view.width, image.pixels.begin() + std::ptrdiff_t{3} * view.width * y);
    return image;
  }
  std::set<std::tuple<int, int, int>> colors_of(const data::Image& image) const {
    std::set<std::tuple<int, int, int>> colors;
    for (size_t i = 0; i < image.pixels.size(); i += 3)
      colors.emplace(image.pixels[i], image.pixels[i + 1], image.pixels[i + 2]);
    return colors;
  }
  nlohmann::json stats(const std::string& arguments) const {
    const Outcome outcome = run("stats --json " + arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out, nullptr, false);
  }
  void place_classes() const {
    place_image("in/train/cat/a.png", 4, 2, kRed);
    place_image("in/train/cat/b.png", 2, 6, kBlue);
    place_image("in/train/dog/c.png", 4, 2, kRed);
    place_image("in/val/cat/a.png", 4, 2, kRed);
    std::filesystem::create_directories(root / "in/val/dog");
  }
};

TEST_F(LabelledData, Stats) {
  place_classes();
  const nlohmann::json all = stats("in"), train = all["splits"][0];
  ASSERT_EQ(all["splits"].size(), 2u);
  EXPECT_EQ(train["images"], 3);
  EXPECT_EQ(train["width"], nlohmann::json::parse(R"({"min": 2, "median": 4, "max": 4})"));
  EXPECT_EQ(train["classes"], nlohmann::json::parse(R"([{"label": 0, "name": "cat", "images": 2},
                                                        {"label": 1, "name": "dog", "images": 1}])"));
  EXPECT_NEAR(train["mean"][0], 2 / 3.0, 1e-12) << "images count equally, whatever their size";
  EXPECT_EQ(train["mean"][1], 0);
  EXPECT_NEAR(train["mean"][2], 1 / 3.0, 1e-12);
  EXPECT_NEAR(train["std"][0], std::sqrt(2) / 3, 1e-12);
  EXPECT_EQ(all["splits"][1]["classes"][1]["images"], 0);
  ASSERT_EQ(all["duplicates"].size(), 1u);
  EXPECT_EQ(all["duplicates"][0]["files"].size(), 3u);
  EXPECT_EQ(all["duplicates"][0]["in_several_splits"], true);
  EXPECT_EQ(all["duplicates"][0]["in_several_classes"], true);
  EXPECT_TRUE(stats("in --nopixels")["splits"][0]["mean"].is_null());
}

TEST_F(LabelledData, StatsAsText) {
  place_classes();
  std::string damaged = contents(root / "in/train/cat/b.png");
  damaged.resize(damaged.size() - 20);
  place_file(root / "in/train/dog/d.png", damaged);
  const Outcome outcome = run("stats in");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* part :
       {"train: 4 images in 2 classes\n  classes without images: 0; images that cannot be read: 1\n"
        "  width: 2 to 4, median 4; height: 2 to 6, median 2\n"
        "  mean of R, G, B in [0, 1]: 0.6667 0.0000 0.3333; standard deviation: 0.4714 0.0000 0.4714\n",
        "       0         2  cat\n", "validation: 1 images in 2 classes\n  classes without images: 1;",
        "images with the bytes of another one: 2; groups of them in several splits: 1, in several classes: 1\n",
        "cannot be read: in/train/dog/d.png"})
    EXPECT_TRUE(contains(outcome.out, part)) << part << "\n" << outcome.out;
}

TEST_F(LabelledData, StatsOfRecords) {
  place_classes();
  ASSERT_EQ(run("imagenet --input=in --output=out --shards=1 --validation_shards=1").code, 0);
  const nlohmann::json folders = stats("in"), records = stats("out");
  for (const char* key : {"images", "width", "height"})
    EXPECT_EQ(records["splits"][0][key], folders["splits"][0][key]) << key;
  EXPECT_EQ(records["splits"][0]["classes"][1]["name"], "dog");
  EXPECT_EQ(records["splits"][0]["classes"][1]["images"], 1);
}

TEST_F(LabelledData, StatsAndSamplesOfLists) {
  place_classes();
  place_file(root / "lists/train.csv",
             "path,label,label\n../in/train/cat/a.png,cat,red\n../in/train/cat/b.png,cat,blue\n");
  const nlohmann::json all = stats("lists"), train = all["splits"][0];
  EXPECT_EQ(all["splits"].size(), 1u);
  EXPECT_EQ(train["images"], 2);
  EXPECT_EQ(train["classes"], nlohmann::json::parse(R"([{"label": 0, "name": "blue", "images": 1},
                                                        {"label": 1, "name": "cat", "images": 2},
                                                        {"label": 2, "name": "red", "images": 1}])"));
  expect("show lists --output sheet.png --image_size=32", 0, "sheet.png: 2 of 2 images of train");
}

TEST_F(LabelledData, ShowsSamplesAsTrained) {
  for (const char* name : {"in/train/red/a.png", "in/train/red/b.png"}) place_image(name, 40, 30, kRed);
  place_image("in/train/blue/c.png", 40, 30, kBlue);
  const std::string command = "show in --output sheet.png --images=3 --image_size=64 --preprocessing=torchvision ";
  expect(command, 0, "sheet.png: 3 of 3 images of train");
  data::Image sheet = picture("sheet.png");
  EXPECT_EQ(sheet.width, 8 + 3 * (5 * 64 + 8)) << "magnified five times";
  auto colors = colors_of(sheet);
  EXPECT_TRUE(colors.contains({255, 0, 0}) && colors.contains({0, 0, 255}));
  ASSERT_EQ(run(command + "--tile=64 --random_erase=1 --random_erase_value=black").code, 0);
  sheet = picture("sheet.png");
  EXPECT_EQ(sheet.width, 8 + 3 * (64 + 8));
  EXPECT_TRUE(colors_of(sheet).contains({0, 0, 0}));
  ASSERT_EQ(run(command + "--mixup_alpha=1").code, 0);
  colors = colors_of(picture("sheet.png"));
  EXPECT_TRUE(std::ranges::any_of(colors, [](const auto& color) {
    const auto [red, green, blue] = color;
    return green == 0 && red > 0 && blue > 0 && std::abs(red + blue - 255) <= 1;
  })) << "mixed";
  expect(command + "--split=validation", 2, "in: no split validation in it");
  expect(command + "--split=other", 1, "--split=other: expected train or validation");
  expect("show in --images=400 --tile=2000 --output s.png", 1, "expected at most 268435456");
  expect(command + "--progressive_resizing=64:0", 1, "--progressive_resizing: expected --image_size");
}

class SplitData : public LabelledData {
 protected:
  void SetUp() override {
    for (int i = 0; i < 10; ++i)
      for (const char* name : {"cat", "dog"})
        place_image(concat("in/", name, "/sub/", i, ".png"), 8 + i, 8, std::string(name) == "cat" ? kRed : kBlue);
  }
  // Relative names of the files of a split.
  std::vector<std::string> files(const std::string& split) const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / split))
      if (!entry.is_directory()) names.push_back(entry.path().lexically_relative(root.path() / split).string());
    std::ranges::sort(names);
    return names;
  }
};

TEST_F(SplitData, EachClassHasItsShares) {
  expect("split in --output=out --validation=0.2 --test=0.1", 0,
         "train: 14 images, out/train\nval: 4 images, out/val\ntest: 2 images, out/test\n");
  std::vector<std::string> all;
  for (const char* name : {"train", "val", "test"}) {
    const std::vector<std::string> some = files(std::string("out/") + name);
    EXPECT_EQ(std::ranges::count_if(some, [](const std::string& one) { return one.starts_with("cat/"); }),
              static_cast<std::ptrdiff_t>(some.size() / 2));
    all.insert(all.end(), some.begin(), some.end());
  }
  std::ranges::sort(all);
  EXPECT_EQ(all, files("in"));
  EXPECT_EQ(contents(root / "out/train" / files("out/train")[0]), contents(root / "in" / files("out/train")[0]));
  ASSERT_EQ(run("split in --output=again --validation=0.2 --test=0.1").code, 0);
  EXPECT_EQ(files("again/val"), files("out/val"));
  ASSERT_EQ(run("split in --output=other --validation=0.2 --test=0.1 --seed=1 --link_images").code, 0);
  EXPECT_NE(files("other/val"), files("out/val"));
  EXPECT_TRUE(std::filesystem::is_symlink(root / "other/val" / files("other/val")[0]));
  expect("check out", 0, "0 faults");
}

TEST_F(SplitData, EqualFilesStayTogether) {
  for (int i = 0; i < 9; ++i) place_image(concat("in/cat/copy", i, ".png"), 8, 8, kRed);  // as 0.png
  for (int seed = 0; seed < 4; ++seed) {
    const std::string out = concat("out", seed);
    ASSERT_EQ(run(concat("split in --output=", out, " --validation=0.3 --seed=", seed)).code, 0);
    const std::vector<std::string> validation = files(out + "/val");
    const auto copies = std::ranges::count_if(
        validation, [](const std::string& name) { return contains(name, "cat/copy") || name == "cat/sub/0.png"; });
    EXPECT_TRUE(copies == 0 || copies == 10) << copies;
  }
}

TEST_F(SplitData, NamesWhatItLeavesOut) {
  place_image("in/rare/a.png", 8, 8, kRed);
  place_file(root / "in/dog/notes.txt", "text");
  const Outcome outcome = run("split in --output=out");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "left out 1 files that are no images, and 0 hidden")) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "1 times a class has no image in a split: rare in val")) << outcome.err;
  EXPECT_TRUE(std::filesystem::is_directory(root / "out/val/rare")) << "all splits have all classes";
  expect("split out --output=twice", 2, "out: its folder train is a split, not a class");
  expect("split in --output=out", 1, "out: is there already");
  expect("split in --output=x --validation=0.7 --test=0.3", 1, "expected shares above 0 and below 1 together");
  expect("split none --output=x", 2, "none");
  place_file(root / "in/dog/bad.png", "no image");
  expect("split in --output=x", 2, "in/dog/bad.png");
  EXPECT_FALSE(std::filesystem::exists(root / "x"));
}

}  // namespace
}  // namespace dtrain
