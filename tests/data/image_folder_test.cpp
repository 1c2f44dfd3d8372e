// Class folders: order and labels of images, left-out files, faults, batches.
#include "data/image_folder.h"

#include <sys/stat.h>

#include <fmt/ranges.h>

#include "data/shards.h"
#include "dtrain/data/catalog.h"
#include "dtrain/data/example.h"
#include "dtrain/data/loader.h"
#include "tests/data/image_files.h"
#include "tests/data/image_folder_fixture.h"

namespace dtrain::data {
namespace {

namespace fs = std::filesystem;

using ImageFolder = ImageFolderFixture;

TEST_F(ImageFolder, OrderIsThatOfTorchvision) {
  for (const char* name :
       {"b/2.jpg", "b/10.jpg", "b/sub/1.jpg", "b/sub/deep/1.jpg", "b/sub 2/1.jpg", "B/1.jpg", "a/1.jpg"})
    place(concat("train/", name), numbered_jpeg(1));
  EXPECT_EQ(listed(), (Lines{"0 B/1.jpg", "1 a/1.jpg", "2 b/10.jpg", "2 b/2.jpg", "2 b/sub/1.jpg", "2 b/sub 2/1.jpg",
                             "2 b/sub/deep/1.jpg"}));
  EXPECT_EQ(classes_of_folders(root.path().string()), (Lines{"B", "a", "b"}));
}

TEST_F(ImageFolder, RecognisesAllFormatsByContent) {
  for (const ImageFile& one : kImageFiles) {
    const std::vector<std::byte> bytes = file_of(one);
    place(concat("train/", one.name, "/no-extension"), {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  place("train/jpeg/a.txt", numbered_jpeg(1));
  const auto source = open();
  EXPECT_EQ(source->size(), std::size(kImageFiles) + 1);
  EXPECT_TRUE(source->faults().empty()) << source->faults().front();
  const auto dataset = open_split({.size = 16}, {.directory = root.path().string()});
  const Batch batch = make_batch(dataset->layout(), 1);
  for (uint64_t i = 0; i < dataset->size(); ++i) dataset->reader()->read(i, {.sample = i}, Row(batch, 0));
}

TEST_F(ImageFolder, CountsWhatIsLeftOut) {
  place("train/cat/1.jpg", numbered_jpeg(1));
  for (const char* name : {"cat/list.txt", "cat/notes.TXT", "cat/README", "list.csv"})
    place(concat("train/", name), "text");
  for (const char* name : {"cat/.DS_Store", "cat/._1.jpg", ".hidden/1.jpg", "cat/.cache/1.jpg"})
    place(concat("train/", name), "text");
  fs::create_directories(root / "train/dog");
  EXPECT_EQ(listed(), Lines{"0 cat/1.jpg"});
  const std::string folder = (root / "train").string();
  EXPECT_EQ(
      notices,
      (Lines{folder + ": 1 images in 2 class folders",
             folder + ": left out 3 files that are no images (2 .txt, 1 without extension), and 4 hidden files and "
                      "folders",
             folder + ": left out 1 files outside of class folders: list.csv",
             folder + ": 1 classes without images: dog"}));
  open();
  EXPECT_EQ(notices.size(), 4u) << "from the index";
}

TEST_F(ImageFolder, FollowsLinks) {
  place("elsewhere/1.jpg", numbered_jpeg(1));
  place("train/a/1.jpg", numbered_jpeg(2));
  fs::create_directory_symlink(root / "elsewhere", root / "train/b");
  fs::create_symlink(root / "elsewhere/1.jpg", root / "train/a/2.jpg");
  EXPECT_EQ(listed(), (Lines{"0 a/1.jpg", "0 a/2.jpg", "1 b/1.jpg"}));
  fs::create_directory_symlink(root / "train/a", root / "train/a/loop");
  fs::create_symlink(root / "nowhere", root / "train/a/3.jpg");
  const auto source = open();
  EXPECT_EQ(source->size(), 3u);
  EXPECT_EQ(source->faults().size(), 2u) << fmt::format("{}", fmt::join(source->faults(), "\n"));
}

TEST_F(ImageFolder, NamesFilesThatCannotBeUsed) {
  place("train/a/1.jpg", numbered_jpeg(1));
  place("train/a/2.jpg", "<!DOCTYPE html><html>");
  place("train/a/3.jpg", "");
  place("train/a/4.jpg", numbered_jpeg(1).substr(0, 200));
  ASSERT_EQ(::mkfifo((root / "train/a/5.jpg").c_str(), 0600), 0);
  const auto source = open();
  EXPECT_EQ(source->size(), 2u) << "the truncated one is a bad record";
  ASSERT_EQ(source->faults().size(), 3u);
  EXPECT_TRUE(contains(source->faults()[0], "train/a/5.jpg: is not a regular file")) << source->faults()[0];
  EXPECT_TRUE(contains(source->faults()[1], "train/a/2.jpg: image of ")) << source->faults()[1];
  EXPECT_TRUE(contains(source->faults()[2], "train/a/3.jpg: image of 0 bytes")) << source->faults()[2];
  EXPECT_EQ(open()->faults(), source->faults()) << "from the index";

  const SplitOptions split{.directory = root.path().string(), .augments = false};
  expect_error([&] { Loader(open_split({.size = 16}, split)); }, Fault::data, "train/a/5.jpg: is not a regular file");
  Loader loader(open_split({.size = 16}, split), {.batch = 2, .training = false, .skip_bad_records = true});
  const Batch* batch = loader.next();
  ASSERT_NE(batch, nullptr);
  EXPECT_EQ(batch->valid, 1);
  EXPECT_EQ(loader.stats().bad_records, 4u);
}

TEST_F(ImageFolder, ClassesOfSplitsAreEqual) {
  for (const char* name : {"train/a/1.jpg", "train/b/1.jpg", "val/a/1.jpg", "val/c/1.jpg"})
    place(name, numbered_jpeg(1));
  refuses("val: class folders that " + (root / "train").string() + " does not have: c", false);
  fs::remove_all(root / "val/c");
  refuses("val: no class folders b, which " + (root / "train").string() + " has; make empty folders", false);
  fs::create_directories(root / "val/b");
  EXPECT_EQ(listed(false), Lines{"0 a/1.jpg"});
  fs::create_directories(root / "valid/b");
  refuses("two folders of one split, val and valid", false);
}

TEST_F(ImageFolder, FindsSplits) {
  place("Training/b/1.jpg", numbered_jpeg(1));
  place("Training/a/1.jpg", numbered_jpeg(2));
  refuses("no folder validation (or val, valid, test) in it", false);
  place("test/b/1.jpg", numbered_jpeg(3));
  fs::create_directories(root / "test/a");
  EXPECT_EQ(listed(), (Lines{"0 a/1.jpg", "1 b/1.jpg"}));
  EXPECT_EQ(listed(false), Lines{"1 b/1.jpg"});
  EXPECT_TRUE(has_image_folders(root.path().string()));
  fs::remove_all(root / "Training");
  EXPECT_EQ(listed(false), Lines{"1 b/1.jpg"}) << "classes of validation alone";
  EXPECT_FALSE(has_image_folders((root / "test").string()));
  EXPECT_FALSE(has_image_folders((root / "none").string()));
}

TEST_F(ImageFolder, RefusesOtherLayouts) {
  place("train/images/1.jpg", numbered_jpeg(1));
  place("train/labels/1.txt", "0 .5 .5 .1 .1");
  refuses("train: its folders images and labels are of detection data (YOLO)");
  fs::remove_all(root / "train");
  place("train/1.jpg", numbered_jpeg(1));
  refuses("train: no class folders in it; expected ");
  EXPECT_FALSE(has_image_folders(root.path().string()));
  expect_error(
      [&] { open_split({}, {.directory = root.path().string()}); }, Fault::data,
      ": no train-*-of-* files in it or in its folder train, no class folders train/CLASS, and no list train.csv");
  place("train/a/list.txt", "1");
  refuses("train: no images in its class folders");
}

TEST_F(ImageFolder, LabelsFitTheModel) {
  for (const char* name : {"train/a/1.jpg", "train/b/1.jpg", "train/c/1.jpg"}) place(name, numbered_jpeg(1));
  const auto label_of_last = [&](int64_t classes, int64_t offset) {
    const auto dataset =
        open_split({.size = 16}, {.directory = root.path().string(), .classes = classes, .label_offset = offset});
    const Batch batch = make_batch(dataset->layout(), 1);
    dataset->reader()->read(2, {.sample = 2}, Row(batch, 0));
    return batch["labels"].data<int32_t>()[0];
  };
  EXPECT_EQ(label_of_last(0, 0), 2);
  EXPECT_EQ(label_of_last(0, 1), 3);
  EXPECT_EQ(label_of_last(10, 0), 2);
  expect_error([&] { label_of_last(2, 0); }, Fault::data,
               "3 class folders, labelled from 0, and label offset 0 do not fit");
  expect_error([&] { label_of_last(3, 1); }, Fault::data,
               "leave --num_classes and --label_offset out, or give at least 4 classes");
  expect_error([&] { label_of_last(3, -1); }, Fault::data, "label offset -1 do not fit");
}

TEST_F(ImageFolder, IdentityDoesNotDependOnThePlace) {
  place("train/a/1.jpg", numbered_jpeg(1));
  place("train/b/1.jpg", numbered_jpeg(2));
  const auto here = open();
  fs::rename(root / "train", root / "training");
  EXPECT_EQ(open()->contents(), here->contents());
  EXPECT_TRUE(contains(here->identity(), "image folder: 2 images, 2 classes, checksum ")) << here->identity();
}

// Rows of the first batches: sample, label and pixels.
std::vector<std::string> rows_of(const std::shared_ptr<Dataset>& dataset, const LoaderOptions& options,
                                 int batches = 6) {
  Loader loader(dataset, options);
  std::vector<std::string> rows;
  for (int i = 0; i < batches; ++i) {
    const Batch* batch = loader.next();
    if (batch == nullptr) break;
    for (int64_t row = 0; row < batch->valid; ++row) {
      const Tensor pixels = (*batch)["images"].slice(row, row + 1);
      rows.push_back(
          fmt::format("{} {} ", batch->samples[static_cast<size_t>(row)], (*batch)["labels"].data<int32_t>()[row]) +
          std::string(static_cast<const char*>(pixels.raw()), pixels.bytes()));
    }
  }
  return rows;
}

// Samples of a step do not depend on threads, nor, all ranks together, on their number.
TEST_F(ImageFolder, BatchesAreEqualForAnyThreadsAndRanks) {
  for (int i = 0; i < 21; ++i) place(fmt::format("train/{}/{}.jpg", i % 3, i), numbered_jpeg(i));
  const std::shared_ptr<Dataset> dataset = open_split({.size = 16}, {.directory = root.path().string()});
  const auto rows = [&](int64_t batch, int workers, int rank, int ranks) {
    return rows_of(dataset, {.batch = batch, .seed = 3, .cursor = 8, .rank = rank, .ranks = ranks, .workers = workers});
  };
  const auto one = rows(4, 1, 0, 1);
  ASSERT_EQ(one.size(), 24u);
  EXPECT_EQ(rows(4, 5, 0, 1), one);
  const auto first = rows(2, 2, 0, 2), second = rows(2, 2, 1, 2);
  for (size_t i = 0; i < one.size(); ++i) EXPECT_EQ(one[i], (i % 4 < 2 ? first : second)[i / 4 * 2 + i % 2]);
}

TEST_F(ImageFolder, BatchesEqualThoseOfShardsInTheSameOrder) {
  for (int i = 0; i < 21; ++i) place(fmt::format("train/{}/{}.jpg", i % 3, i), numbered_jpeg(i));
  fs::create_directory_symlink(root / "train", root / "val");
  const TempDirectory shards;
  const auto source = open();
  for (const char* split : {"train", "validation"})
    write_shards({.directory = shards.path().string(), .threads = 1},
                 {{.name = split, .shards = 1, .count = source->size(), .make = [&](uint64_t i) {
                     std::vector<std::byte> buffer;
                     return image_example({.encoded = source->read(i, buffer), .label = source->label(i) + 1});
                   }}});
  for (const bool training : {true, false}) {
    const LoaderOptions options{.batch = 5, .training = training, .seed = 3};
    const auto rows = [&](const TempDirectory& folder, int64_t offset) {
      return rows_of(open_split({.size = 16}, {.directory = folder.path().string(),
                                               .training = training,
                                               .augments = training,
                                               .classes = 3,
                                               .label_offset = offset}),
                     options);
    };
    EXPECT_EQ(rows(root, 0), rows(shards, -1)) << training;
    EXPECT_EQ(rows(root, 0).size(), training ? 30u : 21u);
  }
}

}  // namespace
}  // namespace dtrain::data
