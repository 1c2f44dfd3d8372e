// Shards, synthetic images and image folders.
#include "data/shards.h"

#include <filesystem>
#include <fstream>
#include <set>

#include "data/image_tree.h"
#include "data/synthetic.h"
#include "dtrain/data/cifar10.h"
#include "dtrain/data/example.h"
#include "dtrain/data/imagenet.h"
#include "dtrain/data/jpeg.h"
#include "dtrain/data/png.h"
#include "dtrain/io/record_file.h"
#include "tests/testing.h"

namespace dtrain::data {
namespace {

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_bytes(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

std::vector<std::byte> small_jpeg(int drawn_class) { return encode_jpeg(draw_image(drawn_class, 10, 16, 1, 2).view()); }

void write_numbers(const std::string& directory, int64_t shards, int64_t threads) {
  const auto number = [](uint64_t i) { return std::string(i % 7, 'x') + concat(i); };
  write_shards({directory, threads}, {{"train", shards, 103, number}});
}

TEST(Shards, ContentIsIndependentOfThreads) {
  const TempDirectory one, four;
  write_numbers(one.path().string(), 4, 1);
  write_numbers(four.path().string(), 4, 4);
  uint64_t i = 0;
  for (int shard = 0; shard < 4; ++shard) {
    const std::string name = concat("train-0000", shard, "-of-00004");
    EXPECT_EQ(contents(one / name), contents(four / name));
    RecordReader reader((one / name).string());
    while (const auto record = reader.next()) {
      const std::string text(reinterpret_cast<const char*>(record->bytes.data()), record->bytes.size());
      EXPECT_EQ(text, std::string(i % 7, 'x') + concat(i));
      ++i;
    }
  }
  EXPECT_EQ(i, 103u);
}

TEST(Shards, RejectAFolderWithAnotherSet) {
  const TempDirectory directory;
  write_numbers(directory.path().string(), 4, 1);
  expect_error([&] { write_numbers(directory.path().string(), 5, 1); }, Fault::config, "-of-00004 of another data set");
  write_numbers(directory.path().string(), 4, 1);  // the same set may be overwritten
}

TEST(Shards, LeaveNothingBehindOnFailure) {
  const TempDirectory directory;
  expect_error(
      [&] {
        write_shards(
            {directory.path().string(), 1},
            {{"train", 1, 10, [](uint64_t i) { return i < 5 ? "x" : throw Error(Fault::data, "record five"); }}});
      },
      Fault::data, "record five");
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

TEST(Shards, ShufflingIsAPermutationOfTheSeed) {
  const auto order = shuffled(1000, 3);
  EXPECT_EQ(std::set<uint64_t>(order.begin(), order.end()).size(), 1000u);
  EXPECT_EQ(order, shuffled(1000, 3));
  EXPECT_NE(order, shuffled(1000, 4));
}

TEST(DrawnImages, AreDeterministic) {
  const Image image = draw_image(3, 10, 32, 1, 5);
  EXPECT_EQ(image.pixels, draw_image(3, 10, 32, 1, 5).pixels);
  EXPECT_NE(image.pixels, draw_image(4, 10, 32, 1, 5).pixels);
  EXPECT_NE(image.pixels, draw_image(3, 10, 32, 1, 6).pixels);
  EXPECT_NE(image.pixels, draw_image(3, 10, 32, 2, 5).pixels);
  EXPECT_NE(drawn_class_name(3, 40), drawn_class_name(13, 40));
  expect_error([] { draw_image(10, 10, 32, 0, 0); }, Fault::config, "class 10 of 10");
}

TEST(ImageExample, HoldsTheBoxesOfItsClass) {
  const std::vector<NormalizedBox> boxes = {{.ymin = 0.1f, .xmin = 0.2f, .ymax = 0.3f, .xmax = 0.4f},
                                            {0.5f, 0.6f, 0.7f, 0.8f}};
  const std::string record = image_example({.label = 3, .boxes = boxes});
  Example example;
  example.parse(std::as_bytes(std::span(record)));
  BoxReader reader;
  const std::vector<NormalizedBox>& read = reader.read(example);
  ASSERT_EQ(read.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(read[i].ymin, boxes[i].ymin);
    EXPECT_EQ(read[i].xmin, boxes[i].xmin);
    EXPECT_EQ(read[i].ymax, boxes[i].ymax);
    EXPECT_EQ(read[i].xmax, boxes[i].xmax);
  }
  std::vector<int64_t> labels;
  example.find("image/object/bbox/label")->read(labels);
  EXPECT_EQ(labels, (std::vector<int64_t>{3, 3}));
}

TEST(ImageTree, IsListedByClassAndName) {
  const TempDirectory root;
  for (const char* name : {"b/2.jpg", "b/1.jpg", "a/3.jpg", "b/.hidden"}) write_bytes(root / name, small_jpeg(0));
  const auto images = list_image_tree(root.path().string(), {"b", "a"}, 1, false);
  ASSERT_EQ(images.size(), 3u);
  EXPECT_EQ(images[0].filename, "3.jpg");
  EXPECT_EQ(images[0].label, 2);
  EXPECT_EQ(images[1].filename, "1.jpg");
  EXPECT_EQ(images[1].label, 1);
  EXPECT_EQ(images[2].synset, "b");
  expect_error([&] { list_image_tree(root.path().string(), {"a"}, 1, false); }, Fault::data, "/b: not one of the 1");
  expect_error([&] { list_image_tree(root.path().string(), {"a", "b", "c"}, 1, false); }, Fault::data, "2 of the 3");
  EXPECT_EQ(list_image_tree(root.path().string(), {"a", "b", "c"}, 1, true).size(), 3u);
  expect_error([&] { list_image_tree((root / "none").string(), {"a"}, 1, false); }, Fault::data, "/none: ");
}

TEST(ImageTree, RecordsKeepJpegsAndReencodePngs) {
  const TempDirectory root;
  const std::vector<std::byte> jpeg = small_jpeg(1);
  write_bytes(root / "a.jpg", jpeg);
  write_bytes(root / "png_in_disguise.JPEG", encode_png(draw_image(2, 10, 16, 1, 2).view()));
  write_bytes(root / "broken.jpg", std::span(jpeg).first(30));
  Example example;
  std::string warning;
  std::string record = tree_record({(root / "a.jpg").string(), "a.jpg", 7, "n1"}, warning);
  example.parse(std::as_bytes(std::span(record)));
  EXPECT_EQ(example.bytes("image/encoded"), std::string_view(reinterpret_cast<const char*>(jpeg.data()), jpeg.size()));
  EXPECT_EQ(example.int64("image/class/label"), 7);
  EXPECT_EQ(example.int64("image/width"), 16);
  EXPECT_EQ(example.bytes("image/class/synset"), "n1");

  const TreeImage disguised{(root / "png_in_disguise.JPEG").string(), "p.JPEG", 1, "n2"};
  record = tree_record(disguised, warning);
  example.parse(std::as_bytes(std::span(record)));
  EXPECT_EQ(sniff_image(std::as_bytes(std::span(example.bytes("image/encoded")))), ImageFormat::jpeg);
  EXPECT_EQ(example.bytes("image/format"), "JPEG");
  record = verbatim_record(disguised, warning);
  example.parse(std::as_bytes(std::span(record)));
  EXPECT_EQ(example.bytes("image/format"), "PNG");

  write_bytes(root / "half.jpg", std::span(jpeg).first(jpeg.size() - 12));
  const TreeImage half{(root / "half.jpg").string(), "half.jpg", 1, ""};
  expect_error([&] { tree_record(half, warning); }, Fault::data, "half.jpg: damaged image: ");
  expect_error(
      [&] {
        tree_record({(root / "broken.jpg").string(), "broken.jpg", 1, ""}, warning);
      },
      Fault::data, "broken.jpg: ");
}

TEST(CifarBatch, IsLossless) {
  const TempDirectory root;
  std::vector<std::byte> bytes(2 * CifarBatch::kRecord);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 37 % 251);
  bytes[0] = std::byte{1};
  bytes[CifarBatch::kRecord] = std::byte{2};
  write_bytes(root / "batch.bin", bytes);
  const CifarBatch batch = read_cifar_batches({(root / "batch.bin").string()});
  ASSERT_EQ(batch.count(), 2u);
  const std::string record = cifar_record(batch, 1, {"a", "b", "c"}, 0);
  Example example;
  example.parse(std::as_bytes(std::span(record)));
  EXPECT_EQ(example.int64("image/class/label"), 2);
  ImageDecoder decoder;
  decoder.open(std::as_bytes(std::span(example.bytes("image/encoded"))));
  const ImageView image = decoder.decode();
  const std::byte* planes = bytes.data() + CifarBatch::kRecord + 1;
  for (int y = 0; y < 32; ++y)
    for (int x = 0; x < 32; ++x)
      for (int c = 0; c < 3; ++c)
        EXPECT_EQ(image.row(y)[3 * x + c], std::to_integer<uint8_t>(planes[c * 1024 + y * 32 + x]));
  expect_error([&] { cifar_record(batch, 1, {"a", "b"}, 0); }, Fault::data, "label 2, expected 0 to 1");
  write_bytes(root / "cut.bin", std::span(bytes).first(5000));
  expect_error([&] { read_cifar_batches({(root / "cut.bin").string()}); }, Fault::data, "cut.bin: 5000 bytes");
}

}  // namespace
}  // namespace dtrain::data
