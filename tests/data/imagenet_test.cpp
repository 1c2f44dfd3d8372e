#include "dtrain/data/imagenet.h"

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fstream>
#include <limits>
#include <set>

#include "dtrain/data/augment.h"
#include "dtrain/data/example.h"
#include "dtrain/data/image.h"
#include "dtrain/data/loader.h"
#include "tests/testing.h"

namespace dtrain::data {
namespace {

namespace fs = std::filesystem;

// Fake decoder: the first pixel is the first byte of the "image", the second the number of boxes.
class FirstByte final : public Preprocessor {
 public:
  SampleNotes run(std::span<const std::byte> encoded, std::span<const NormalizedBox> boxes, const SampleKey&,
                  void* pixels) override {
    if (encoded.empty()) throw Error(Fault::data, "an image of 0 bytes");
    static_cast<std::byte*>(pixels)[0] = encoded[0];
    static_cast<std::byte*>(pixels)[1] = static_cast<std::byte>(boxes.size());
    return {.damage = encoded[0] == std::byte{'!'} ? "damaged" : ""};
  }
};

PreprocessorFactory first_byte() {
  return {{1, 1, 3}, DType::u8, [] { return std::make_unique<FirstByte>(); }};
}

struct Boxes {
  std::vector<float> ymin, xmin, ymax, xmax;
};

std::string record(int64_t label, std::string_view image, const Boxes& boxes = {}) {
  ExampleWriter writer;
  writer.bytes("image/encoded", image);
  writer.int64("image/class/label", label);
  writer.floats("image/object/bbox/ymin", boxes.ymin);
  writer.floats("image/object/bbox/xmin", boxes.xmin);
  writer.floats("image/object/bbox/ymax", boxes.ymax);
  writer.floats("image/object/bbox/xmax", boxes.xmax);
  return writer.take();
}

void write_records(const fs::path& path, const std::vector<std::string>& records,
                   Compression compression = Compression::none) {
  RecordWriter writer(path.string(), compression);
  for (const std::string& bytes : records) writer.append(bytes);
  writer.finish();
}

void flip(const fs::path& path, int64_t offset) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  offset < 0 ? file.seekg(offset, std::ios::end) : file.seekg(offset);
  const auto at = file.tellg();
  const char byte = static_cast<char>(file.get() ^ 0x10);
  file.seekp(at);
  file.put(byte);
}

// Two shards of three records, labels 0 to 5, images "0" to "5".
void write_six(const fs::path& directory) {
  for (int shard = 0; shard < 2; ++shard) {
    std::vector<std::string> records;
    for (int i = 3 * shard; i < 3 * shard + 3; ++i) records.push_back(record(i, std::to_string(i)));
    write_records(directory / concat("train-0000", shard, "-of-00002"), records);
  }
}

std::shared_ptr<ImagenetDataset> open(const fs::path& directory, int64_t classes = 10, int64_t offset = 0) {
  return std::make_shared<ImagenetDataset>(ImagenetOptions{directory.string(), "train", classes, offset, {}},
                                           first_byte());
}

// Decoded record.
struct Sample {
  int32_t label = -1;
  bool damaged = false;
  std::array<uint8_t, 3> pixels{};
};

Sample read_record(const Dataset& dataset, SampleReader& reader, uint64_t record) {
  const Batch batch = make_batch(dataset.layout(), 1);
  Sample sample;
  sample.damaged = !reader.read(record, {}, Row(batch, 0)).damage.empty();
  sample.label = batch["labels"].span<int32_t>()[0];
  std::ranges::copy(batch["images"].span<uint8_t>(), sample.pixels.begin());
  return sample;
}

// Sample of a data set with a single record.
Sample read_one(const std::string& bytes, int64_t classes = 10, int64_t offset = 0) {
  const TempDirectory directory;
  write_records(directory / "train-00000-of-00001", {bytes});
  const auto dataset = open(directory.path(), classes, offset);
  return read_record(*dataset, *dataset->reader(), 0);
}

LoaderOptions evaluation(int64_t batch) {
  LoaderOptions options;
  options.batch = batch;
  options.training = false;
  options.workers = 2;
  return options;
}

TEST(Imagenet, ReadsLabelsImagesAndBoxes) {
  const Boxes two{{0, 0.25f}, {0, 0.5f}, {1, 0.25f}, {1, 0.75f}};
  const Sample sample = read_one(record(3, "x", two));
  EXPECT_EQ(sample.label, 3);
  EXPECT_FALSE(sample.damaged);
  EXPECT_EQ(sample.pixels[0], 'x');
  EXPECT_EQ(sample.pixels[1], 2);
  const Sample damaged = read_one(record(3, "!"), 10, -1);
  EXPECT_EQ(damaged.label, 2);
  EXPECT_TRUE(damaged.damaged);
}

TEST(Imagenet, BoxesAreOptional) {
  ExampleWriter writer;
  writer.bytes("image/encoded", "x");
  writer.int64("image/class/label", 1);
  EXPECT_EQ(read_one(writer.take()).pixels[1], 0);
}

TEST(Imagenet, RejectsLabelsOutOfRangeWithTheValue) {
  const auto refuses = [](int64_t label, int64_t classes, int64_t offset, const std::string& message) {
    expect_error([&] { read_one(record(label, "x"), classes, offset); }, Fault::data, message);
  };
  refuses(10, 10, 0, "image/class/label is 10, expected 0 to 9 (10 classes, label offset 0)");
  refuses(-1, 10, 0, "is -1, expected 0 to 9");
  refuses(0, 1000, -1, "is 0, expected 1 to 1000");
  refuses(1001, 1000, -1, "is 1001, expected 1 to 1000");
  refuses(INT64_MAX, 10, 5, "is 9223372036854775807, expected -5 to 4");
  refuses(INT64_MIN, 10, -5, "is -9223372036854775808, expected 5 to 14");
}

TEST(Imagenet, RejectsIncompleteRecords) {
  ExampleWriter writer;
  writer.bytes("image/encoded", "x");
  expect_error([&] { read_one(writer.take()); }, Fault::data, "feature image/class/label is missing");
  writer.int64("image/class/label", 1);
  expect_error([&] { read_one(writer.take()); }, Fault::data, "feature image/encoded is missing");
  writer.bytes("image/encoded", "x");
  writer.int64s("image/class/label", std::vector<int64_t>{1, 2});
  expect_error([&] { read_one(writer.take()); }, Fault::data, "feature image/class/label holds 2 values, expected 1");
  writer.bytes("image/encoded", "x");
  writer.bytes("image/class/label", "1");
  expect_error([&] { read_one(writer.take()); }, Fault::data, "holds bytes values, expected int64");
  expect_error([&] { read_one(record(1, "")); }, Fault::data, "an image of 0 bytes");
}

TEST(Imagenet, RejectsInvalidBoxes) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const Boxes good{{0.1f}, {0.1f}, {0.9f}, {0.9f}};
  read_one(record(1, "x", good));
  for (auto list : {&Boxes::ymin, &Boxes::xmin, &Boxes::ymax, &Boxes::xmax})
    for (float bad : {kNan, -0.1f, 1.1f, std::numeric_limits<float>::infinity()}) {
      Boxes boxes = good;
      (boxes.*list)[0] = bad;
      expect_error([&] { read_one(record(1, "x", boxes)); }, Fault::data, concat(bad));
    }
  const Boxes inverted{{0.5f}, {0.1f}, {0.4f}, {0.9f}}, uneven{{0, 0}, {0}, {1}, {1}};
  expect_error([&] { read_one(record(1, "x", inverted)); }, Fault::data, "ymin 0.5 xmin 0.1 ymax 0.4");
  expect_error([&] { read_one(record(1, "x", uneven)); }, Fault::data, "1 xmin, 2 ymin, 1 xmax, 1 ymax");
  const std::vector<float> zeros(1000000), ones(1000000, 1);
  expect_error([&] { read_one(record(1, "x", {zeros, zeros, ones, ones})); }, Fault::data, "1000000 bounding boxes");
}

TEST(Imagenet, NumbersRecordsAcrossShards) {
  const TempDirectory directory;
  write_six(directory.path());
  const auto dataset = open(directory.path());
  EXPECT_EQ(dataset->layout(), labelled_images({1, 1, 3}, DType::u8));
  const ImagenetOptions again{.directory = directory.path().string()};
  expect_error([&] { ImagenetDataset(again, {}); }, Fault::config, "image data set without preprocessing");
  EXPECT_EQ(dataset->size(), 6u);
  EXPECT_EQ(dataset->shard_begins(), (std::vector<uint64_t>{0, 3, 6}));
  const RecordLocation at = dataset->locate(4);
  EXPECT_EQ(at.file, directory / "train-00001-of-00002");
  EXPECT_EQ(at.record, 1u);
  EXPECT_EQ(at.offset, 16 + record(3, "3").size());
  const auto bytes = fs::file_size(directory / "train-00000-of-00002");
  EXPECT_EQ(dataset->identity(), concat("train-00000-of-00002 ", bytes, "\ntrain-00001-of-00002 ", bytes, "\n"));
  Loader loader(dataset, evaluation(6));
  const Batch* batch = loader.next();
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ((*batch)["labels"].span<int32_t>()[i], i);
    EXPECT_EQ((*batch)["images"].span<uint8_t>()[3 * i], '0' + i);
  }
}

TEST(Imagenet, ReadsGzipShardsThroughTheCache) {
  const TempDirectory directory, cache;
  write_records(directory / "train-00000-of-00001.gz", {record(7, "seven")}, Compression::gzip);
  const ImagenetOptions options{directory.path().string(), "train", 10, 0, {cache.path().string()}};
  const ImagenetDataset dataset(options, first_byte());
  EXPECT_EQ(read_record(dataset, *dataset.reader(), 0).label, 7);
  EXPECT_EQ(dataset.identity().rfind("train-00000-of-00001.gz ", 0), 0u);
  expect_error([&] { open(directory.path()); }, Fault::resource, "zcat");
}

// Damaged shards under both policies, through the loader.
TEST(Imagenet, BadRecordsFailOrAreSkipped) {
  const TempDirectory directory;
  const fs::path shard = directory / "train-00000-of-00001";
  std::vector<std::string> records;
  for (int i = 0; i < 8; ++i) records.push_back(record(i, std::to_string(i)));
  const uint64_t frame = 16 + records[0].size();
  records[2] = record(99, "2");
  records[3] = "\x0a\x7f";
  records[4] = record(4, "");
  write_records(shard, records);
  flip(shard, static_cast<int64_t>(frame + 12));  // the body of record 1

  const auto dataset = open(directory.path());
  const std::vector<std::string> reasons = {"corrupted body", "image/class/label is 99", "malformed tf.Example",
                                            "an image of 0 bytes"};
  for (uint64_t first = 1; first <= 4; ++first) {
    LoaderOptions options = evaluation(1);
    options.cursor = first;
    Loader loader(dataset, options);
    const std::string place = concat(shard.string(), ": record ", first, " at byte ");
    expect_error([&] { loader.next(); }, Fault::data, place);
    expect_error([&] { loader.next(); }, Fault::data, reasons[first - 1]);
    try {
      loader.next();
    } catch (const Error& error) {
      const std::string message = error.what();
      EXPECT_EQ(message.find(shard.string(), 1), std::string::npos) << "duplicate location: " << message;
    }
  }
  LoaderOptions options = evaluation(8);
  options.training = true;
  options.skip_bad_records = true;
  Loader loader(dataset, options);
  std::multiset<int32_t> labels;
  for (int32_t label : (*loader.next())["labels"].span<int32_t>()) labels.insert(label);
  EXPECT_EQ(labels, (std::multiset<int32_t>{0, 5, 5, 5, 5, 5, 6, 7}));
  EXPECT_EQ(loader.stats().bad_records, 4u);
}

TEST(Imagenet, ShardThatEndsEarlyFailsOrIsOneBadRecord) {
  const TempDirectory directory;
  write_six(directory.path());
  const fs::path shard = directory / "train-00001-of-00002";
  fs::resize_file(shard, fs::file_size(shard) - 1);
  const auto dataset = open(directory.path());
  LoaderOptions options = evaluation(5);
  expect_error([&] { Loader(dataset, options); }, Fault::data, shard.string() + ": record 2 at byte ");
  options.skip_bad_records = true;
  Loader loader(dataset, options);
  EXPECT_EQ(loader.next()->valid, 5);
  EXPECT_EQ(loader.next(), nullptr);
  EXPECT_EQ(loader.stats().bad_records, 1u);
}

TEST(Imagenet, OpensShardsAsNeededWhereFewFilesMayBeOpen) {
  const TempDirectory directory;
  constexpr int kShards = 48;
  for (int i = 0; i < kShards; ++i) write_records(directory / concat("train-", i, "-of-", kShards), {record(i, "x")});
  rlimit usual{};
  getrlimit(RLIMIT_NOFILE, &usual);
  const rlimit few{2 * kShards - 6, usual.rlim_max};
  setrlimit(RLIMIT_NOFILE, &few);
  const auto dataset = open(directory.path(), kShards);
  setrlimit(RLIMIT_NOFILE, &usual);
  const auto reader = dataset->reader();
  for (int i = 0; i < kShards; ++i) EXPECT_EQ(read_record(*dataset, *reader, i).label, i);
  write_records(directory / "train-7-of-48", {record(7, "y"), record(8, "z")});
  expect_error([&] { read_record(*dataset, *reader, 7); }, Fault::data, "since it was opened");
}

// Links TensorFlow's test records into a temporary folder, which receives the index files.
void link_sample_data(const TempDirectory& directory) {
  for (const auto& entry : fs::directory_iterator(test_data("tfrecord/tf_cnn_benchmarks")))
    fs::create_symlink(fs::absolute(entry.path()), directory / entry.path().filename().string());
}

class CentrePixel final : public Preprocessor {
 public:
  explicit CentrePixel(std::atomic<int>& boxed) : boxed_(boxed) {}

  SampleNotes run(std::span<const std::byte> encoded, std::span<const NormalizedBox> boxes, const SampleKey&,
                  void* pixels) override {
    decoder_.open(encoded);
    const ImageView image = decoder_.decode();
    std::copy_n(image.row(image.height / 2) + image.width / 2 * 3, 3, static_cast<uint8_t*>(pixels));
    boxed_ += !boxes.empty();
    return {.damage = decoder_.damage()};
  }

 private:
  std::atomic<int>& boxed_;  // number of images with boxes
  ImageDecoder decoder_;
};

// Known contents of this data set: one grey level per label.
TEST(Imagenet, ReadsTfCnnBenchmarksTestData) {
  const fs::path data = test_data("tfrecord/tf_cnn_benchmarks");
  if (!fs::exists(data)) GTEST_SKIP() << "SKIPPED: " << data;
  constexpr int kGrey[] = {0, 25, 51, 76, 102, 128, 153, 179, 204, 230};
  const TempDirectory directory;
  link_sample_data(directory);
  std::atomic<int> boxed = 0;
  const PreprocessorFactory preprocessors{
      {1, 1, 3}, DType::u8, [&boxed] { return std::make_unique<CentrePixel>(boxed); }};
  for (const auto& [split, records] : {std::pair{"train", 512u}, std::pair{"validation", 128u}}) {
    const ImagenetOptions options{directory.path().string(), split, 10, 0, {}};
    const auto dataset = std::make_shared<ImagenetDataset>(options, preprocessors);
    ASSERT_EQ(dataset->size(), records);
    Loader loader(dataset, evaluation(100));
    uint64_t seen = 0;
    while (const Batch* batch = loader.next())
      for (int64_t i = 0; i < batch->valid; ++i, ++seen)
        for (int c = 0; c < 3; ++c)
          ASSERT_NEAR((*batch)["images"].span<uint8_t>()[3 * i + c], kGrey[(*batch)["labels"].span<int32_t>()[i]], 2);
    EXPECT_EQ(seen, records);
    EXPECT_EQ(loader.stats().damaged_images, 0u);
  }
  EXPECT_EQ(boxed, 512) << "all of the training images have boxes, and none of the others";
}

// Augmented batches are byte-identical, as in a training run.
TEST(Imagenet, AugmentedBatchesAreEqualForAnyNumberOfWorkersAndRanks) {
  const fs::path data = test_data("tfrecord/tf_cnn_benchmarks");
  if (!fs::exists(data)) GTEST_SKIP() << "SKIPPED: " << data;
  const TempDirectory directory;
  link_sample_data(directory);
  constexpr int kSide = 24, kBatches = 4;
  PreprocessOptions preprocess;
  preprocess.height = preprocess.width = kSide;
  preprocess.distort_color = true;
  const ImagenetOptions source{directory.path().string(), "train", 10, 0, {}};
  const auto dataset = std::make_shared<ImagenetDataset>(source, make_preprocess(preprocess));
  const auto stream = [&](int workers, int ranks) {
    LoaderOptions options = evaluation(32 / ranks);
    options.training = true;
    options.workers = workers;
    options.ranks = ranks;
    options.cursor = 480;  // the second epoch begins in the second batch
    std::vector<std::unique_ptr<Loader>> loaders;
    for (options.rank = 0; options.rank < ranks; ++options.rank)
      loaders.push_back(std::make_unique<Loader>(dataset, options));
    std::vector<float> pixels;
    for (int b = 0; b < kBatches; ++b)
      for (auto& loader : loaders) {
        const auto batch = (*loader->next())["images"].span<float>();
        pixels.insert(pixels.end(), batch.begin(), batch.end());
      }
    return pixels;
  };
  const std::vector<float> one = stream(1, 1);
  const auto [low, high] = std::minmax_element(one.begin(), one.end());
  EXPECT_LT(*low + 50, *high);
  for (const auto& [workers, ranks] : {std::pair{3, 1}, {8, 1}, {1, 2}, {2, 4}}) {
    const std::vector<float> other = stream(workers, ranks);
    ASSERT_EQ(one.size(), other.size());
    EXPECT_EQ(std::memcmp(one.data(), other.data(), one.size() * sizeof(float)), 0)
        << workers << " workers, " << ranks << " ranks";
  }
}

}  // namespace
}  // namespace dtrain::data
