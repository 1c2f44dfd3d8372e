// Catalogue of data sets, and names of preprocessing options.
#include "dtrain/data/catalog.h"

#include <filesystem>

#include "data/shards.h"
#include "dtrain/data/cifar10.h"
#include "dtrain/data/example.h"
#include "dtrain/io/record_file.h"
#include "tests/files.h"
#include "tests/jpegs.h"
#include "tests/testing.h"

namespace dtrain::data {
namespace {

TEST(Catalog, DefaultsOfTfCnnBenchmarks) {
  const DatasetInfo& imagenet = dataset_info("imagenet");
  EXPECT_EQ(imagenet.training, 1281167u);
  EXPECT_EQ(imagenet.validation, 50000u);
  EXPECT_EQ(imagenet.classes, 1001);
  const DatasetInfo& cifar = dataset_info("cifar10");
  EXPECT_EQ(cifar.training, 50000u);
  EXPECT_EQ(cifar.validation, 10000u);
  EXPECT_EQ(cifar.classes, 11);
  EXPECT_EQ(dataset_names(), (std::vector<std::string>{"imagenet", "cifar10", "fashion_mnist", "mnist", "coco"}));
  EXPECT_EQ(preprocessing_names(),
            (std::vector<std::string>{"tf_cnn", "torchvision", "official_models_imagenet", "mlperf", "aws"}));
}

// Guessed data set at `path`, and the notice, if any.
std::string guessed(const std::string& path) {
  std::vector<std::string> notices;
  const std::string name = dataset_at(path, notices).name;
  return notices.empty() ? name : concat(name, "; ", notices.front());
}

TEST(Catalog, GuessesDataSetFromPath) {
  EXPECT_EQ(guessed("/data/cifar10_records"), "cifar10");
  EXPECT_EQ(guessed("/data/imagenet/cifar10"), "cifar10");
  EXPECT_EQ(guessed("/data/FashionMNIST/raw"), "fashion_mnist");
  EXPECT_EQ(guessed("/data/MNIST"), "mnist");
  EXPECT_EQ(guessed("/data/records"), "imagenet");
  EXPECT_EQ(guessed(""), "imagenet");
}

// File contents take precedence over the path.
TEST(Catalog, FilesTakePrecedenceOverPath) {
  const TempDirectory root;
  const auto guess = [&](const std::string& folder) { return guessed((root / folder).string()); };
  const auto place_record = [&](const std::string& folder, const char* key) {
    std::filesystem::create_directories(root / folder);
    ExampleWriter writer;
    writer.int64(key, 1);
    RecordWriter file((root / folder / "train-00000-of-00001").string(), Compression::none);
    file.append(writer.take());
    file.finish();
  };
  place_record("coco/imagenet", "image/class/label");
  const std::string records = guess("coco/imagenet");
  EXPECT_TRUE(records.starts_with("imagenet; ")) << records;
  EXPECT_TRUE(contains(records, "is taken for imagenet by its files, records of labelled images")) << records;
  place_record("coco/cifar10", "image/class/label");
  EXPECT_EQ(guess("coco/cifar10"), "cifar10");
  place_record("shapes", "image/object/class/label");
  EXPECT_TRUE(guess("shapes").starts_with("coco"));
  EXPECT_EQ(guess("coco"), "coco");
  std::filesystem::create_directories(root / "digits/train-images-idx3-ubyte");
  write_file((root / "digits/train-images-idx3-ubyte/train-images-idx3-ubyte").string(), "");
  EXPECT_TRUE(guess("digits").starts_with("mnist"));
}

TEST(Catalog, RejectsUnknownNames) {
  EXPECT_EQ(find_dataset("flowers"), nullptr);
  const auto refuses = [](const Pixels& pixels, const std::string& message) {
    expect_error([&] { pixels.make(true); }, Fault::config, message);
  };
  refuses({.dataset = "flowers"}, "unknown data set 'flowers'; there are imagenet, cifar10, fashion_mnist, mnist");
  refuses({.preprocessing = "caffe"}, "data set imagenet has no preprocessing 'caffe'");
  refuses({.resize_method = "lanczos"}, "unknown resize method 'lanczos'");
}

// Pixels of one image with one key.
std::vector<float> pixels_of(const PreprocessorFactory& make) {
  EXPECT_EQ(make.dtype, DType::f32);
  std::vector<float> pixels(static_cast<size_t>(make.shape.count()));
  make()->run(usual_jpegs()[0], {}, {.seed = 4, .epoch = 1, .sample = 5, .position = 6}, pixels.data());
  return pixels;
}

TEST(Pixels, FollowDataSetAndPreset) {
  for (const bool training : {false, true}) {
    const PreprocessOptions options{.training = training, .height = 16, .width = 16, .resize = TfResize::bicubic};
    EXPECT_EQ(pixels_of(Pixels{.resize_method = "bicubic", .size = 16}.make(training)),
              pixels_of(make_preprocess(options)));
    EXPECT_EQ(pixels_of(Pixels{.dataset = "cifar10", .size = 16}.make(training)),
              pixels_of(make_cifar_preprocess({training, 16, 16})));
  }
  const Pixels official{.preprocessing = "official_models_imagenet", .size = 16};
  EXPECT_EQ(pixels_of(official.make(false)),
            pixels_of(make_preprocess({.preset = Preset::official, .training = false, .height = 16, .width = 16})));
  EXPECT_EQ(official.scale().mean, (std::array<float, 3>{123.68f, 116.78f, 103.94f}));
  EXPECT_EQ(official.scale().scale, (std::array<float, 3>{1, 1, 1}));
  const PreprocessorFactory torchvision = Pixels{.preprocessing = "torchvision", .size = 20}.make(true);
  EXPECT_EQ(torchvision.dtype, DType::u8);
  EXPECT_EQ(torchvision.shape, (Shape{20, 20, 3}));
}

TEST(Pixels, NormalisationFollowsPreset) {
  const PixelScale usual = Pixels{}.scale();
  EXPECT_EQ((0 - usual.mean[0]) * usual.scale[0], -1);
  EXPECT_EQ((255 - usual.mean[2]) * usual.scale[2], 1);
  const PixelScale mean = Pixels{.ml_perf = true}.scale();
  EXPECT_EQ(mean.mean, (std::array<float, 3>{123.68f, 116.78f, 103.94f}));
  EXPECT_EQ(mean.scale, (std::array<float, 3>{1, 1, 1}));
  const PixelScale torchvision = Pixels{.preprocessing = "torchvision"}.scale();
  EXPECT_FLOAT_EQ(torchvision.mean[1], 255 * 0.456f);
  EXPECT_FLOAT_EQ(torchvision.scale[1], 1 / (255 * 0.224f));
}

TEST(Pixels, PngsAreDecodedOnTheHost) {
  EXPECT_EQ(Pixels{}.host_only(), "");
  EXPECT_EQ((Pixels{.dataset = "cifar10", .preprocessing = "torchvision"}.host_only()), "");
  const Pixels cifar{.dataset = "cifar10"};
  EXPECT_EQ(cifar.host_only(), "CIFAR-10's images are PNGs and are augmented on the host");
}

TEST(Pixels, DeferUnlessHostOnly) {
  for (const DatasetInfo& info : datasets()) {
    if (info.files == FilesKind::objects) continue;
    for (const Preprocessing& preprocessing : info.preprocessings) {
      const Pixels pixels{.dataset = info.name, .preprocessing = preprocessing.name, .size = 16};
      EncodedImage image(std::make_shared<HostAllocator>());
      EXPECT_EQ(pixels.make(true)()->defer(usual_jpegs()[0], {}, {}, image).has_value(), pixels.host_only().empty())
          << info.name << ' ' << preprocessing.name;
    }
  }
}

TEST(Catalog, OpensTheSplitAskedFor) {
  const TempDirectory directory;
  for (const auto& [split, count] : {std::pair{"train", 3u}, std::pair{"validation", 2u}})
    write_shards({.directory = directory.path().string(), .threads = 1},
                 {{.name = split, .count = count, .make = [](uint64_t i) {
                     return image_example({.encoded = usual_jpegs()[0], .label = static_cast<int64_t>(i)});
                   }}});
  for (const char* name : {"imagenet", "cifar10"})
    for (const bool training : {true, false}) {
      const auto split = open_split({.dataset = name}, {.directory = directory.path().string(), .training = training});
      EXPECT_EQ(split->size(), training ? 3u : 2u) << name;
    }
}

}  // namespace
}  // namespace dtrain::data
