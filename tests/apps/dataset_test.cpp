// dtrain-data's writing commands: messages and output.
#include <nlohmann/json.hpp>

#include "data/image_tree.h"
#include "dtrain/data/cifar10.h"
#include "dtrain/data/example.h"
#include "dtrain/data/image.h"
#include "dtrain/data/png.h"
#include "tests/apps/dataset_fixture.h"
#include "tests/data/image_files.h"

namespace dtrain {
namespace {

using SortedJson = nlohmann::json;

struct Labelled {
  int64_t label;
  std::string filename, synset, encoded, format;
};

// The records of a split, in order.
std::vector<Labelled> read_split(const std::filesystem::path& folder, const std::string& split) {
  std::vector<Labelled> images;
  data::Example example;
  for (const std::string& name : listing(folder)) {
    if (!name.starts_with(split + "-")) continue;
    RecordReader reader((folder / name).string());
    while (const auto record = reader.next()) {
      example.parse(record->bytes);
      images.push_back({example.int64("image/class/label"), std::string(example.bytes("image/filename")),
                        std::string(example.bytes("image/class/synset")), std::string(example.bytes("image/encoded")),
                        std::string(example.bytes("image/format"))});
    }
  }
  return images;
}

void expect_equal_folders(const std::filesystem::path& a, const std::filesystem::path& b) {
  ASSERT_EQ(listing(a), listing(b));
  for (const std::string& name : listing(a)) EXPECT_EQ(contents(a / name), contents(b / name)) << name;
}

class DatasetMaking : public DatasetProgram {};

TEST_F(DatasetMaking, UsageErrorsNameTheWayOut) {
  expect("", 1, "error: no command given; see dtrain-data --help");
  expect("verfy", 1, "error: no command verfy; did you mean verify?");
  expect("verify", 1, "no folder or file given");
  expect("verify --thread=3", 1, "did you mean --threads?");
  expect("synthesize --threads=-1 --output x", 1, "at least 0");
  expect("synthesize", 1, "--output is missing");
  expect("imagenet --output x", 1, "--input is missing");
  expect("synthesize x --output y", 1, "unexpected argument 'x': all arguments are flags");
  expect("synthesize --output x --shards 100000", 1, "at most 99999");
  expect("throughput", 1, "0 folders given");
  expect("throughput x --split test", 1, "--split: expected one of train|validation, found 'test'");
  expect("--help", 0, "Exit codes");
  for (const char* command :
       {"imagenet", "resize", "synthesize", "shapes", "cifar10", "coco", "inspect", "verify", "index", "throughput"}) {
    expect(concat(command, " --help"), 0, concat("usage: dtrain-data ", command));
    expect(concat(command, " --version"), 0, "dtrain-data ");
  }
}

TEST_F(DatasetMaking, SynthesizedSetsDependOnTheSeedAlone) {
  const std::string flags = "synthesize --train 40 --validation 8 --shards 4 --image_size 16 --classes 5 --output ";
  ASSERT_EQ(run(flags + "one --threads 1").code, 0);
  ASSERT_EQ(run(flags + "three --threads 3").code, 0);
  ASSERT_EQ(run(flags + "other --seed 1").code, 0);
  expect_equal_folders(root / "one", root / "three");
  EXPECT_EQ(listing(root / "one"),
            (std::vector<std::string>{".shards", "train-00000-of-00004", "train-00001-of-00004", "train-00002-of-00004",
                                      "train-00003-of-00004", "validation-00000-of-00001"}));
  EXPECT_NE(contents(root / "one" / "train-00000-of-00004"), contents(root / "other" / "train-00000-of-00004"));

  std::vector<int> per_label(7);
  for (const Labelled& image : read_split(root / "one", "train")) ++per_label.at(static_cast<size_t>(image.label));
  EXPECT_EQ(per_label, (std::vector<int>{0, 8, 8, 8, 8, 8, 0}));
  expect("verify one", 0, "5 files, 48 records, 0 faults, 0 damaged images");
}

TEST_F(DatasetMaking, InspectPrintsAJsonLinePerFile) {
  write_records(root / "a-00000-of-00001", {image_record(small_jpeg()), image_record(small_jpeg(1))});
  write_records(root / "b.tfrecord.gz", {image_record(small_jpeg())}, Compression::gzip);
  place_file(root / "notes.txt", "not a record");
  const Outcome outcome = run("inspect . --threads 2");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  std::istringstream lines(outcome.out);
  std::string line;
  ASSERT_TRUE(std::getline(lines, line));
  const SortedJson plain = SortedJson::parse(line);
  EXPECT_EQ(plain["file"], "./a-00000-of-00001");
  EXPECT_EQ(plain["records"], 2);
  EXPECT_EQ(plain["bytes"], std::filesystem::file_size(root / "a-00000-of-00001"));
  EXPECT_EQ(plain["compression"], "none");
  EXPECT_EQ(plain["keys"]["image/class/label"], (SortedJson{{"type", "int64"}, {"count", 2}, {"values", 2}}));
  EXPECT_EQ(plain["keys"]["image/encoded"]["type"], "bytes");
  EXPECT_EQ(plain["keys"]["image/object/bbox/xmin"], (SortedJson{{"type", "float"}, {"count", 2}, {"values", 0}}));
  ASSERT_TRUE(std::getline(lines, line));
  const SortedJson packed = SortedJson::parse(line);
  EXPECT_EQ(packed["compression"], "gzip");
  EXPECT_EQ(packed["records"], 1);
  EXPECT_FALSE(std::getline(lines, line));
  expect("inspect . >/dev/full", 6, "error: ");
}

TEST_F(DatasetMaking, InspectCountsTheLastOfDoubledKeysAndManyKeysFast) {
  data::ExampleWriter example;
  example.int64("a", 1);
  const float values[] = {1, 2, 3};
  example.floats("a", values);
  for (int i = 0; i < 50000; ++i) example.int64(concat("key", i), i);
  write_records(root / "x.tfrecord", {example.take()});
  const Outcome outcome = run("inspect x.tfrecord");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(SortedJson::parse(outcome.out)["keys"]["a"], (SortedJson{{"type", "float"}, {"count", 1}, {"values", 3}}));
}

// Content determines the format, not the name.
TEST_F(DatasetMaking, ImagesOfEveryFormatAreTaken) {
  const std::pair<const char*, const char*> files[] = {
      {"a.jpg", "webp"},     {"b.bmp", "bmp 24 bits"},      {"c.gif", "gif"},      {"d.tif", "tiff, orientation 6"},
      {"e.png", "tiff LZW"}, {"f.JPEG", "gif, two frames"}, {"g.webp", "bmp RLE8"}};
  for (const auto& [name, file] : files) place_file(root / "in/train/n1" / name, text_of(data::file_of(file)));
  expect("check in", 0, "7 images, 0 records, 0 faults");
  expect("imagenet --input in --output out --shards 1", 0, "train: 7 images in 1 shards");
  expect("verify out", 0, "7 records, 0 faults, 0 damaged images");
  data::ImageDecoder decoder;
  for (const Labelled& image : read_split(root / "out", "train")) {
    EXPECT_EQ(image.format, "JPEG");
    const data::ImageInfo info = decoder.open(std::as_bytes(std::span(image.encoded)));
    EXPECT_EQ(info.format, data::ImageFormat::jpeg);
    EXPECT_EQ(info.width, 13);
    EXPECT_EQ(info.orientation, image.filename == "d.tif" ? 6 : 1) << image.filename;
  }
  expect("resize --input in/train --output small --size 8", 0, "7");
  const std::string small = contents(root / "small/n1/c.gif");
  EXPECT_EQ(data::sniff_image(std::as_bytes(std::span(small))), data::ImageFormat::jpeg);
}

class ImagenetTree : public DatasetProgram {
 protected:
  ImagenetTree() {
    for (int i = 0; i < 9; ++i)
      place_file(root / concat("in/train/", i % 2 ? "nb" : "na", "/", i, ".JPEG"), small_jpeg(i));
    disguised = text_of(data::encode_png(data::draw_image(2, 10, 16, 1, 2).view()));
    place_file(root / "in/train/nb/disguised.JPEG", disguised);
    place_file(root / "labels.txt", "nc\nna\r\nnb \n");
  }
  std::string disguised;
  const std::string command = "imagenet --input in --labels labels.txt --shards 3 ";
};

TEST_F(ImagenetTree, BecomesShuffledShardsOfMendedJpegs) {
  expect(command + "--output one --threads 1", 0, "train: 10 images in 3 shards");
  expect(command + "--output three --threads 3", 0, "images of 2 of the 3 classes");
  expect_equal_folders(root / "one", root / "three");
  EXPECT_EQ(contents(root / "one" / "classes.txt"), "1 nc\n2 na\n3 nb\n");
  expect("verify one", 0, "3 files, 10 records, 0 faults");
  std::string order;
  for (const Labelled& image : read_split(root / "one", "train")) {
    EXPECT_EQ(image.label, image.synset == "na" ? 2 : 3);
    EXPECT_EQ(image.format, "JPEG");
    EXPECT_EQ(data::sniff_image(std::as_bytes(std::span(image.encoded))), data::ImageFormat::jpeg);
    order += image.filename[0];
    if (image.filename == "disguised.JPEG") continue;
    EXPECT_EQ(image.encoded, small_jpeg(image.filename[0] - '0'));
  }
  EXPECT_NE(order, "024681357d") << "not shuffled";
  ASSERT_EQ(run(command + "--output other --seed 5").code, 0);
  EXPECT_NE(contents(root / "one" / "train-00000-of-00003"), contents(root / "other" / "train-00000-of-00003"));
}

TEST_F(ImagenetTree, ValidationMayBeAFolderPerClassOrALabelsFile) {
  place_file(root / "in/val/nb/v.JPEG", small_jpeg(7));
  expect(command + "--output folders", 0, "validation: 1 images in 1 shards");
  EXPECT_EQ(read_split(root / "folders", "validation").at(0).label, 3);

  std::filesystem::remove_all(root / "in/val");
  for (int i = 1; i <= 3; ++i) place_file(root / concat("in/val/ILSVRC2012_val_0000000", i, ".JPEG"), small_jpeg(i));
  place_file(root / "val.txt", "nb\nna\nnb\n");
  expect(command + "--output flat --validation_labels val.txt --validation_shards 2", 0, "3 images in 2 shards");
  for (const Labelled& image : read_split(root / "flat", "validation"))
    EXPECT_EQ(image.label, image.filename == "ILSVRC2012_val_00000002.JPEG" ? 2 : 3) << image.filename;

  place_file(root / "val.txt", "nb\nna\n");
  expect(command + "--output bad --validation_labels val.txt", 2, "val.txt: 2 lines, expected one for each of the 3");
  place_file(root / "val.txt", "nb\n490\nna\n");
  expect(command + "--output bad --validation_labels val.txt", 2, "val.txt: line 2: 490 is not one of the 3 classes");
  EXPECT_FALSE(std::filesystem::exists(root / "bad")) << "written before all was listed";
  expect(command + "--output bad", 2,
         "val: no class folders in it; give the classes of its images by --validation_labels");
}

TEST_F(ImagenetTree, WithoutLabelsTheFoldersAreTheClasses) {
  expect("imagenet --input in --shards 1 --output out", 0, "10 images");
  for (const Labelled& image : read_split(root / "out", "train")) EXPECT_EQ(image.label, image.synset == "na" ? 1 : 2);
}

TEST_F(ImagenetTree, FaultsNameTheFile) {
  expect("imagenet --input none --labels labels.txt --output out", 2, "none: cannot be listed");
  expect("imagenet --input in --labels none.txt --output out", 2, "none.txt: No such file");
  place_file(root / "short.txt", "na\n");
  expect("imagenet --input in --labels short.txt --output out", 2,
         "short.txt: has no line for nb, which has images: not one of the 1 classes");
  place_file(root / "twice.txt", "na\nnb\nna\n");
  expect("imagenet --input in --labels twice.txt --output out", 2, "class na is listed twice");
  place_file(root / "in/train/na/cut.JPEG", small_jpeg().substr(0, 100));
  expect(command + "--output out", 2, "in/train/na/cut.JPEG: JPEG cannot be decoded");
  std::filesystem::remove(root / "in/train/na/cut.JPEG");
  ASSERT_EQ(run("--version", "mkfifo in/train/na/fifo.JPEG;").code, 0);
  expect(command + "--output out", 2, "fifo.JPEG: is a FIFO");
}

TEST_F(ImagenetTree, FoldersAmongImagesAreNotPassedOver) {
  std::filesystem::create_directory(root / "in/train/na/.hidden");
  expect(command + "--shards=1 --output out", 0, "train: ");
  place_file(root / "in/train/na/more/b.JPEG", small_jpeg());
  expect(command + "--shards=1 --output other", 2, "in/train/na/more: is a folder among images");
}

TEST_F(ImagenetTree, MendsCmykAndYcck) {
  const auto corner = test_data("jpeg_corner");
  if (!std::filesystem::exists(corner)) GTEST_SKIP() << "SKIPPED: " << corner;
  const std::vector<std::string> files = {"jpeg-decoder/reftest/images/mozilla/jpg-cmyk-1.jpg",
                                          "jpeg-decoder/reftest/images/ycck.jpg"};
  for (size_t i = 0; i < files.size(); ++i)
    place_file(root / concat("cmyk/train/na/", i, ".JPEG"), contents(corner / files[i]));
  ASSERT_EQ(run("imagenet --input cmyk --labels labels.txt --shards 1 --output out").code, 0);
  data::ImageDecoder mended, original;
  for (const Labelled& image : read_split(root / "out", "train")) {
    const std::string bytes = contents(corner / files.at(static_cast<size_t>(image.filename[0] - '0')));
    EXPECT_EQ(mended.open(std::as_bytes(std::span(image.encoded))).components, 3);
    original.open(std::as_bytes(std::span(bytes)));
    const data::ImageView a = mended.decode(), b = original.decode();
    ASSERT_EQ(a.width, b.width);
    double sum = 0;
    for (int y = 0; y < a.height; ++y)
      for (int x = 0; x < 3 * a.width; ++x) sum += std::abs(a.row(y)[x] - b.row(y)[x]);
    EXPECT_LT(sum / (3.0 * a.width * a.height), 1.0) << image.filename;
  }
}

TEST_F(DatasetMaking, Cifar10ComesFromBatchesOrFolders) {
  std::string batch(3 * data::CifarBatch::kRecord, '\0');
  for (size_t i = 0; i < batch.size(); ++i) batch[i] = static_cast<char>(i * 31 % 251);
  for (size_t i = 0; i < 3; ++i) batch[i * data::CifarBatch::kRecord] = static_cast<char>(9 - i);
  for (int i = 1; i <= 5; ++i) place_file(root / concat("bin/data_batch_", i, ".bin"), batch);
  expect("cifar10 --input bin --output out", 2, "test_batch.bin is missing");
  place_file(root / "bin/test_batch.bin", batch);
  expect("cifar10 --input bin --output one --threads 1 --shards 4", 0, "train: 15 images in 4 shards");
  expect("cifar10 --input bin --output three --threads 3 --shards 4", 0, "validation: 3 images in 1 shards");
  expect_equal_folders(root / "one", root / "three");
  expect("verify one", 0, "5 files, 18 records, 0 faults");
  for (const Labelled& image : read_split(root / "one", "validation"))
    EXPECT_EQ(image.label, 9 - (image.filename[0] - '0'));
  place_file(root / "bin/data_batch_3.bin", batch.substr(1));
  expect("cifar10 --input bin --output out", 2, "data_batch_3.bin: 9218 bytes");

  const std::vector<std::string> classes = {"airplane", "automobile", "bird",  "cat",  "deer",
                                            "dog",      "frog",       "horse", "ship", "truck"};
  for (const std::string& name : classes)
    for (const char* split : {"train", "test"})
      place_file(root / "tree" / split / name / "0001.jpg", small_jpeg(static_cast<int>(name.size() % 10)));
  expect("cifar10 --input tree --output folders --shards 2 --first_label 1", 0, "train: 10 images in 2 shards");
  for (const Labelled& image : read_split(root / "folders", "validation")) {
    EXPECT_EQ(image.synset, classes.at(static_cast<size_t>(image.label - 1)));
    EXPECT_EQ(image.encoded, small_jpeg(static_cast<int>(image.synset.size() % 10)));
  }
  std::filesystem::remove_all(root / "tree/test/dog");
  expect("cifar10 --input tree --output out", 2, "holds 9 of the 10 classes");
}

TEST_F(DatasetMaking, RealCifar10FilesKeepTheirBytes) {
  const auto archive = test_data("cifar10_jpg.tar.gz");
  if (!std::filesystem::exists(archive)) GTEST_SKIP() << "SKIPPED: " << archive;
  ASSERT_EQ(run("--version", concat("tar xzf '", archive.string(), "' --wildcards '*/000[0-2].jpg';")).code, 0);
  expect("cifar10 --input . --output out --shards 2", 0, "train: 30 images in 2 shards");
  for (const Labelled& image : read_split(root / "out", "train"))
    EXPECT_EQ(image.encoded, contents(root / "train" / image.synset / image.filename));
  expect("verify out", 0, "3 files, 60 records, 0 faults, 0 damaged images");
}

TEST_F(DatasetMaking, WritersAreAtomic) {
  const std::string flags = "synthesize --train 4000 --image_size 16 --shards 2 --threads 2 --output ";
  place_file(root / "file", "x");
  expect(flags + "file", 1, "file: is not a directory; choose another name");
  expect(flags + "/proc/none", 6, "/proc/none");
  // A file size limit simulates a full disk.
  expect(flags + "limited", 6, "limited/.shards.new/train-0000", "trap '' XFSZ; ulimit -f 8;");
  EXPECT_TRUE(listing(root / "limited").empty());
  std::filesystem::create_directory(root / "stopped");
  for (const char* signal : {"INT", "TERM"}) {
    const Outcome outcome =
        run(flags + "stopped --train 4000000", concat("timeout --foreground --preserve-status -s ", signal, " 1"));
    EXPECT_EQ(outcome.code, signal == std::string("INT") ? 130 : 143) << outcome.err;
    EXPECT_TRUE(listing(root / "stopped").empty());
  }
  ASSERT_EQ(run("synthesize --train 10 --image_size 16 --shards 2 --output set").code, 0);
  expect("synthesize --train 10 --image_size 16 --shards 3 --output set", 1, "-of-00002 of another data set");
  place_file(root / "set/train-00001-of-00002.tmp-0123456789abcdef", "left by a killed run");
  ASSERT_EQ(run("synthesize --train 10 --image_size 16 --shards 2 --output set").code, 0);
  EXPECT_EQ(listing(root / "set").size(), 4u);
}

TEST_F(DatasetMaking, ThroughputEndsWithAJsonLine) {
  ASSERT_EQ(run("synthesize --train 12 --image_size 16 --shards 2 --output set").code, 0);
  for (const char* preprocessing : {"tf_cnn", "torchvision"}) {
    const Outcome outcome =
        run(concat("throughput set --threads 2 --seconds 1 --image_size 32 --json --preprocessing ", preprocessing));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const SortedJson line = SortedJson::parse(outcome.out.substr(outcome.out.find('\n')));
    EXPECT_GT(line["images_per_sec"], 0.0);
    EXPECT_GT(line["images_per_sec_per_core"], 0.0);
  }
  expect("throughput none", 2, "none: cannot list the directory");
  write_records(root / "empty/train-00000-of-00001", {});
  expect("throughput empty --seconds 0.1", 2, "empty: no record in the files train-*");
  write_records(root / "bad/train-00000-of-00001", {image_record("no image")});
  expect("throughput bad --seconds 60", 2, "train-00000-of-00001: record 0 at byte 0: image of 8 bytes is no JPEG");
}

}  // namespace
}  // namespace dtrain
