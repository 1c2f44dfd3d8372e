// --on_bad_image: handling of unreadable and damaged images in dtrain-data's converters.
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "dtrain/data/example.h"
#include "dtrain/data/png.h"
#include "libdtrain/io/file_lock.h"
#include "tests/apps/dataset_fixture.h"
#include "tests/data/coco_folder.h"
#include "tests/data/tar_files.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

std::string large_jpeg() { return text_of(data::encode_jpeg(data::draw_image(3, 10, 64, 1, 2).view())); }

std::string truncated(const std::string& image) { return image.substr(0, image.size() * 2 / 3); }

class BadImages : public DatasetProgram {
 protected:
  // Five images of two classes, one of them intact.
  void make_tree() const {
    place_file(root / "in/train/a/1.jpg", small_jpeg());
    place_file(root / "in/train/a/Thumbs.db", "no image");
    place_file(root / "in/train/a/half.jpg", truncated(large_jpeg()));
    place_file(root / "in/train/b/zero.jpg", "");
    place_file(root / "in/train/b/half.png", truncated(text_of(data::encode_png(data::Image(40, 40).view()))));
  }
  const std::vector<std::string> bad = {"a/Thumbs.db", "a/half.jpg", "b/half.png", "b/zero.jpg"};

  // `said` names all of them, with a reason.
  void expect_all_named(const std::string& said) const {
    for (const std::string& name : bad) EXPECT_TRUE(contains(said, "in/train/" + name + ": ")) << name << "\n" << said;
    EXPECT_TRUE(contains(said, "a/half.jpg: damaged image: Premature end")) << said;
  }
  // The file of each entry of skipped.json.
  std::vector<std::string> skipped(const fs::path& folder) const {
    std::vector<std::string> files;
    const auto list = nlohmann::json::parse(contents(root / folder / "skipped.json"));
    for (const auto& one : list.at("skipped")) {
      files.push_back(one.at("file"));
      EXPECT_NE(one.at("reason"), "");
    }
    std::ranges::sort(files);
    return files;
  }
};

TEST_F(BadImages, AreAllListedInOneRun) {
  make_tree();
  const Outcome failed = run("imagenet --input in --shards 2 --output set");
  EXPECT_EQ(failed.code, 2);
  expect_all_named(failed.err);
  EXPECT_TRUE(contains(failed.err, "4 of 5 images cannot be used, and no set is written")) << failed.err;
  EXPECT_TRUE(listing(root / "set").empty()) << "something is left";
  const Outcome listed = run("imagenet --input in --shards 2 --output listed --on_bad_image list");
  EXPECT_EQ(listed.code, 2);
  expect_all_named(listed.out);
  EXPECT_TRUE(contains(listed.out, "5 images, 4 of them cannot be used")) << listed.out;
  EXPECT_FALSE(fs::exists(root / "listed"));
}

TEST_F(BadImages, AreSkippedAndWrittenDown) {
  make_tree();
  const Outcome outcome = run("imagenet --input in --shards 2 --output set --on_bad_image skip");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.out, "train: 1 images in 2 shards")) << outcome.out;
  EXPECT_TRUE(contains(outcome.err, "4 of 5 images left out, listed in set/skipped.json; the first: in/train/"))
      << outcome.err;
  std::vector<std::string> expected;
  for (const std::string& name : bad) expected.push_back("in/train/" + name);
  EXPECT_EQ(skipped("set"), expected);
  expect("verify set", 0, "2 files, 1 records, 0 faults, 0 damaged images");
  // An intact set that replaces it has no list of skipped images.
  for (const std::string& name : bad) fs::remove(root / "in/train" / name);
  place_file(root / "in/train/b/2.jpg", small_jpeg(1));
  expect("imagenet --input in --shards 2 --output set", 0, "train: 2 images in 2 shards");
  EXPECT_TRUE(skipped("set").empty());
}

TEST_F(BadImages, OfAnInterruptedConversionAreStillListed) {
  std::vector<std::pair<std::string, std::string>> images;
  for (int i = 0; i < 8; ++i) images.emplace_back(concat(i, ".jpg"), i == 3 ? "bad" : small_jpeg(i));
  place_file(root / "train.tar", tar_of({{"n1.tar", tar_of(images)}}));
  const std::string command = "imagenet --train_tar train.tar --shards 8 --output set";
  // Intact shards are kept when bad images are an error, and reused when they are skipped.
  const Outcome failed = run(command);
  EXPECT_EQ(failed.code, 2);
  EXPECT_TRUE(contains(failed.err, "complete stay in set/.shards.new")) << failed.err;
  const Outcome outcome = run(command + " --on_bad_image skip");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "7 shards are complete")) << outcome.err;
  EXPECT_EQ(skipped("set").size(), 1u);
  expect("verify set", 0, "8 files, 7 records, 0 faults");
}

TEST_F(BadImages, OfRecordsAreFoundByVerifyAndRefusedByResize) {
  const std::string half = truncated(large_jpeg());
  write_records(root / "set/train-00000-of-00001", {image_record(small_jpeg()), image_record(half)});
  expect("verify set", 2, "1 files, 2 records, 0 faults, 1 damaged images");
  expect("resize --input set --output small --size 8", 2, "train-00000-of-00001: record 1 at byte ");
  expect("resize --input set --output small --size 8", 2, ": damaged image: Premature end");
  expect("resize --input set --output small --size 8 --on_bad_image skip", 0, "train: 1 images in 1 shards");
  EXPECT_EQ(skipped("small").size(), 1u);
}

TEST_F(BadImages, OfAnnotationsAreNamedAndSkipped) {
  const data::CocoFolder coco;
  const std::string image = concat(coco.folder(), "/im5.jpg");
  write_file(image, truncated(contents(image)));
  std::filesystem::remove(coco.folder() + "/im3.png");
  const std::string command = "coco --input '" + coco.root() + "' --output set --shards 2";
  const Outcome failed = run(command);
  EXPECT_EQ(failed.code, 2);
  EXPECT_TRUE(contains(failed.err, "im5.jpg: damaged image: ")) << failed.err;
  EXPECT_TRUE(contains(failed.err, "im3.png: No such file")) << failed.err;
  expect(command + " --on_bad_image skip", 0, "train: 5 images in 2 shards");
  EXPECT_EQ(skipped("set").size(), 2u);
}

// This includes images that are found missing or unreadable while the annotations are read.
TEST_F(BadImages, OfAnnotationsWithoutSizesAreNamedAndSkipped) {
  const data::CocoFolder coco;
  auto annotations = nlohmann::json::parse(contents(coco.annotations()));
  for (nlohmann::json& image : annotations["images"]) {
    if (image["id"] == 3) image["width"] = 0;
    if (image["id"] == 4) image["file_name"] = "/elsewhere/gone.png";
    image["id"] = concat("image-", image["id"].get<int>());
  }
  for (nlohmann::json& object : annotations["annotations"])
    object["image_id"] = concat("image-", object["image_id"].get<int>());
  write_file(coco.annotations(), annotations.dump());
  write_file(coco.folder() + "/im3.png", contents(coco.folder() + "/im3.png").substr(0, 10));
  write_file(coco.folder() + "/im5.jpg", "");
  const std::string command = "coco --input '" + coco.root() + "' --output set --shards 2";
  const Outcome failed = run(command);
  EXPECT_EQ(failed.code, 2);
  EXPECT_TRUE(contains(failed.err, "3 of 14 images cannot be used")) << failed.err;
  EXPECT_TRUE(contains(failed.err, "error: " + coco.folder() + "/im3.png: ")) << failed.err;
  EXPECT_TRUE(contains(failed.err, "elsewhere/gone.png: no file ")) << failed.err;
  expect(command + " --on_bad_image skip", 0, "train: 4 images in 2 shards");
  EXPECT_EQ(skipped("set").size(), 3u);
}

// Extra bytes before the end marker, as written by some cameras, are harmless.
TEST_F(BadImages, AWarningThatCostsNoPixelsIsNamedAndNoFault) {
  std::string odd = small_jpeg();
  odd.insert(odd.size() - 2, "some bytes too many");
  place_file(root / "in/train/a/1.jpg", odd);
  expect("imagenet --input in --shards 1 --output set", 0,
         "1 images decode with a warning and are kept; the first: in/");
  expect("verify set", 0, "0 faults, 0 damaged images, 1 images with warnings");
}

TEST_F(BadImages, LeaveFoldersThatAreResizedInPlaceAsTheyWere) {
  place_file(root / "in/a/good.jpg", large_jpeg());
  place_file(root / "in/a/half.jpg", truncated(large_jpeg()));
  place_file(root / "in/b/text.jpg", "text");
  const std::string command = "resize --input in --output in --size 16";
  const Outcome failed = run(command);
  EXPECT_EQ(failed.code, 2);
  EXPECT_TRUE(contains(failed.err, "in/a/half.jpg: damaged image: Premature end")) << failed.err;
  EXPECT_TRUE(contains(failed.err, "in/b/text.jpg: image of 4 bytes")) << failed.err;
  EXPECT_EQ(contents(root / "in/a/good.jpg"), large_jpeg());
  EXPECT_EQ(listing(root / "in"), (std::vector<std::string>{"a", "b"}));
  expect(command + " --on_bad_image list", 2, "3 images, 2 of them cannot be used");
  expect(command + " --on_bad_image skip", 0, "2 of 3 images left as they were, listed in in/skipped.json");
  EXPECT_NE(contents(root / "in/a/good.jpg"), large_jpeg());
  EXPECT_EQ(contents(root / "in/a/half.jpg"), truncated(large_jpeg()));
  EXPECT_EQ(skipped("in"), (std::vector<std::string>{"in/a/half.jpg", "in/b/text.jpg"}));
  expect(command + " --on_bad_image skip", 0, "1 images in in");
}

TEST_F(BadImages, ResizingTouchesNothingThatItCannotFinish) {
  place_file(root / "in/a/1.jpg", large_jpeg());
  place_file(root / "in/b/2.jpg", large_jpeg());
  const std::string command = "resize --input in --output in --size 16";
  {
    std::filesystem::create_directory(root / "in/.resized.new");
    const FileLock other((root / "in/.resized.new/lock").string());
    place_file(root / "in/.resized.new/files/a/1.jpg", "of the other run");
    expect(command, 1, "in/.resized.new/lock");
    EXPECT_EQ(contents(root / "in/.resized.new/files/a/1.jpg"), "of the other run");
  }
  place_file(root / "out/b/2.jpg/x", "a folder in the place of an image");
  expect("resize --input in --output out --size 16", 1, "out/b/2.jpg: is a folder, expected an image");
  EXPECT_FALSE(fs::exists(root / "out/a/1.jpg"));
  if (geteuid() != 0) {  // root may write anywhere
    fs::permissions(root / "in/b", fs::perms::owner_read | fs::perms::owner_exec);
    expect(command, 6, "in/b: Permission denied");
    EXPECT_EQ(contents(root / "in/a/1.jpg"), large_jpeg());
    fs::permissions(root / "in/b", fs::perms::owner_all);
  }
  expect(command, 0, "2 images in in");
  EXPECT_EQ(listing(root / "in"), (std::vector<std::string>{"a", "b"}));
}

TEST_F(BadImages, ResizingWritesThroughNoLink) {
  place_file(root / "store/1.jpg", large_jpeg());
  place_file(root / "store/b/2.jpg", large_jpeg());
  fs::permissions(root / "store/1.jpg", fs::perms::owner_read);
  fs::create_directories(root / "in/a");
  fs::create_symlink(root / "store/1.jpg", root / "in/a/1.jpg");
  expect("resize --input in --output in --size 16", 0, "1 images in in");
  EXPECT_EQ(contents(root / "store/1.jpg"), large_jpeg());
  EXPECT_FALSE(fs::is_symlink(root / "in/a/1.jpg"));
  EXPECT_NE(contents(root / "in/a/1.jpg"), large_jpeg());
  // A class folder that is a link is read, but not written to.
  fs::create_symlink(root / "store/b", root / "in/b");
  expect("resize --input in --output in --size 16", 1, "in/b: is a link to a folder elsewhere");
  EXPECT_EQ(contents(root / "store/b/2.jpg"), large_jpeg());
  expect("resize --input in --output out --size 16", 0, "2 images in out");
  EXPECT_TRUE(fs::exists(root / "out/b/2.jpg"));
  fs::create_symlink("..", root / "in/a/round");
  expect("resize --input in --output out --size 16", 2, "in/a/round: is a link to ");
}

}  // namespace
}  // namespace dtrain
