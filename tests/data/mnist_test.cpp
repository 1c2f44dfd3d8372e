// IDX files, valid and damaged, and their data sets.
#include "dtrain/data/mnist.h"

#include "data/whole_image.h"
#include "dtrain/data/catalog.h"
#include "dtrain/data/png.h"
#include "tests/data/idx_files.h"
#include "tests/testing.h"

namespace dtrain::data {
namespace {

class Idx : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return (folder / name).string(); }
  void place(const std::string& name, const std::string& bytes) const { write_file(path(name), bytes); }
  void refuses(const std::string& bytes, const std::string& message) const {
    place("a-idx3-ubyte", bytes);
    write_gzip(path("a-idx3-ubyte.gz"), bytes);
    for (const char* name : {"a-idx3-ubyte", "a-idx3-ubyte.gz"})
      expect_error([&] { read_idx(path(name)); }, Fault::data, concat(path(name), ": ", message));
  }
  void refuses_set(const std::string& message, const MnistOptions& changes = {}) const {
    MnistOptions options = changes;
    options.directory = folder.path().string();
    expect_error([&] { MnistDataset dataset(options); }, Fault::data, message);
  }

  TempDirectory folder;
};

TEST_F(Idx, ReadsItems) {
  const std::string bytes = idx_images(3, 5);
  place("a-idx3-ubyte", bytes);
  write_gzip(path("b"), bytes);
  for (const char* name : {"a-idx3-ubyte", "b"}) {
    const IdxArray array = read_idx(path(name));
    EXPECT_EQ(array.gzip, name[0] == 'b');
    EXPECT_EQ(array.shape, (std::vector<uint32_t>{3, 5, 5}));
    EXPECT_EQ(shape_text(array), "3 x 5 x 5");
    EXPECT_EQ(array.item_bytes(), 25u);
    EXPECT_EQ(array.offset_of(2), 16u + 50);
    for (uint64_t i = 0; i < 3; ++i)
      EXPECT_EQ(std::string(array.item(i).begin(), array.item(i).end()), bytes.substr(array.offset_of(i), 25));
  }
  place("none-idx1-ubyte", idx_header({0}));
  EXPECT_EQ(read_idx(path("none-idx1-ubyte")).item_bytes(), 0u);
}

TEST_F(Idx, InvalidFilesAreRejectedWithOffset) {
  refuses("", "ends at byte 0, within the header");
  refuses(idx_header({3, 5, 5}).substr(0, 13), "ends at byte 13, within the header");
  refuses("PNG..", "magic number 0x504e472e at byte 0, expected 0x00000801 for labels or 0x00000803 for images");
  refuses(idx_header({3, 5, 5}, 13), "magic number 0x00000d03");
  refuses(idx_header({1, 1, 1, 1, 1}), "magic number 0x00000805");
  refuses(idx_header({}), "magic number 0x00000800");
  refuses(idx_images(3, 5).substr(0, 90), "ends at byte 90, expected 91 for 3 x 5 x 5 bytes: truncated");
  refuses(idx_images(3, 5) + "x", "goes on after byte 91, where 3 x 5 x 5 bytes end");
  refuses(idx_header({UINT32_MAX, UINT32_MAX, UINT32_MAX}),
          "header at byte 4 states 4294967295 x 4294967295 x 4294967295 bytes, expected at most");
  // No allocation depends on the header alone.
  refuses(idx_header({4, 1024, 1024, 1024}) + "x", "ends at byte 21, expected 4294967316");
  write_gzip(path("cut.gz"), idx_images(50));
  place("cut.gz", dtrain::read_file(path("cut.gz")).substr(0, 100));
  expect_error([&] { read_idx(path("cut.gz")); }, Fault::data, "cut.gz: truncated gzip stream after byte ");
  expect_error([&] { read_idx(path("absent")); }, Fault::data, "absent: No such file");
}

TEST_F(Idx, RecognisesFileNames) {
  for (const char* name : {"train-images-idx3-ubyte", "t10k-labels.idx1-ubyte.gz", "emnist-letters-train-idx3-ubyte"})
    EXPECT_TRUE(has_idx_name(name)) << name;
  for (const char* name : {".a-idx3-ubyte", "a-idx3-ubyte.zip", "a-idx5-ubyte", "idx3-ubyte", "train-00000-of-00001"})
    EXPECT_FALSE(has_idx_name(name)) << name;
}

TEST_F(Idx, ReplicatesGreyToThreeChannels) {
  write_mnist(folder.path(), 30, 12);
  for (const bool training : {true, false}) {
    const auto dataset =
        open_split({.dataset = "mnist", .size = 28}, {.directory = folder.path().string(), .training = training});
    EXPECT_EQ(dataset->size(), training ? 30u : 12u);
    const Batch batch = make_batch(dataset->layout(), 12);
    const auto reader = dataset->reader();
    for (int i = 0; i < 12; ++i) EXPECT_EQ(reader->read(i, {}, {batch, i}).damage, "");
    ASSERT_EQ(batch["images"].shape(), (Shape{12, 28, 28, 3}));
    const float* pixels = batch["images"].data<float>();
    for (int i = 0; i < 12; ++i) {
      EXPECT_EQ(batch["labels"].data<int32_t>()[i], i % 10);
      for (int p = 0; p < 28 * 28 * 3; ++p)
        ASSERT_EQ(pixels[i * 28 * 28 * 3 + p], p < 3 ? i : i % 10 * 25) << i << " " << p;
    }
    EXPECT_EQ(dataset->locate(2).offset, 16u + 2 * 784);
    EXPECT_NE(dataset->contents().find("labels-idx1-ubyte"), std::string::npos);
  }
}

// Kaggle's archives put each file into a folder of its name.
TEST_F(Idx, FindsFilesInFoldersOfTheirName) {
  std::filesystem::create_directories(folder / "train-images-idx3-ubyte");
  std::filesystem::create_directories(folder / "train-labels.idx1-ubyte");
  place("train-images-idx3-ubyte/train-images-idx3-ubyte", idx_images(10));
  place("train-labels.idx1-ubyte/train-labels.idx1-ubyte", idx_labels(10));
  EXPECT_EQ(read_mnist(folder.path().string(), true).images.items(), 10u);
}

TEST_F(Idx, RejectsEmnistByName) {
  place("emnist-letters-train-images-idx3-ubyte", idx_images(2));
  expect_error(
      [&] { read_mnist(folder.path().string(), true); }, Fault::data,
      "holds EMNIST, as emnist-letters-train-images-idx3-ubyte: give the files of one of its splits the names");
  place("train-images-idx3-ubyte", idx_images(2));
  place("train-labels-idx1-ubyte", idx_header({2}) + "\x01\x1a");
  expect_error([&] { MnistDataset({.directory = folder.path().string()}); }, Fault::data,
               "the labels are 1 to 26, for which --num_classes=26 --label_offset=-1 are right");
  EXPECT_EQ(MnistDataset({.directory = folder.path().string(), .classes = 26, .label_offset = -1}).size(), 2u);
}

// Matches dtrain-classify on an image file with the same pixels.
TEST_F(Idx, PixelsMatchImageFilesAtAnySize) {
  std::string bytes = idx_images(1);
  for (size_t i = 16; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * i % 251);
  place("train-images-idx3-ubyte", bytes);
  place("train-labels-idx1-ubyte", idx_labels(1));
  const std::vector<std::byte> png =
      encode_grey_png(std::span(reinterpret_cast<const uint8_t*>(bytes.data()) + 16, 784), 28, 28);
  for (const int size : {28, 32, 17}) {
    const MnistDataset dataset({.directory = folder.path().string(), .size = size});
    const Batch batch = make_batch(dataset.layout(), 1);
    dataset.reader()->read(0, {}, {batch, 0});
    std::vector<float> expected(static_cast<size_t>(size * size * 3));
    EXPECT_EQ(
        (Pixels{.dataset = "fashion_mnist", .size = size}.make(false))()->run(png, {}, {}, expected.data()).damage, "");
    for (size_t i = 0; i < expected.size(); ++i) ASSERT_EQ(batch["images"].data<float>()[i], expected[i]) << i;
  }
  expect_error([] { make_whole_image_preprocess(0, 28); }, Fault::config, "28x0 pixels");
}

TEST_F(Idx, FindsFolderRaw) {
  write_mnist(folder / "raw", 20, 10);
  EXPECT_EQ(read_mnist(folder.path().string(), false).labels.items(), 10u);
  EXPECT_TRUE(read_mnist(folder.path().string(), false).labels.gzip);
  write_file(path("raw/t10k-labels.idx1-ubyte"), idx_labels(10));
  EXPECT_FALSE(read_mnist(folder.path().string(), false).labels.gzip);
}

TEST_F(Idx, RejectsMismatchedSets) {
  refuses_set(concat(folder.path().string(), ": no file train-images-idx3-ubyte in it, plain or with .gz"));
  write_mnist(folder.path(), 30, 12);
  refuses_set("train-labels-idx1-ubyte: label 9 at byte 17, expected 0 to 8 (9 classes, label offset 0)",
              {.classes = 9});
  refuses_set("label 9 at byte 17, expected -1 to 8 (10 classes, label offset 1)", {.label_offset = 1});
  EXPECT_EQ(MnistDataset({.directory = folder.path().string(), .classes = 11, .label_offset = 1}).size(), 30u);
  place("train-labels-idx1-ubyte", idx_labels(29));
  refuses_set("train-labels-idx1-ubyte: 29 labels by its header, expected 30, one for each image of ");
  place("train-labels-idx1-ubyte", idx_images(30));
  refuses_set("train-labels-idx1-ubyte: 30 x 28 x 28 bytes by its header, expected labels");
  place("train-images-idx3-ubyte", idx_labels(30));
  refuses_set("train-images-idx3-ubyte: 30 bytes by its header, expected images");
  place("train-images-idx3-ubyte", idx_header({0, 28, 28}));
  place("train-labels-idx1-ubyte", idx_header({0}));
  refuses_set("train-images-idx3-ubyte: 0 x 28 x 28 bytes by its header: no images");
  std::filesystem::remove(folder / "train-labels-idx1-ubyte");
  refuses_set("no file train-labels-idx1-ubyte in it");
}

}  // namespace
}  // namespace dtrain::data
