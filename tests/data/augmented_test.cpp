// AugmentedDataset is a pure function of sample keys; random erasing; repeated augmentation; staged loading.
#include "dtrain/data/augmented.h"

#include <cmath>
#include <set>

#include "data/sample_order.h"
#include "data/staged_loader.h"
#include "tests/testing.h"

namespace dtrain::data {
namespace {

// Noise images of `side` x `side` pixels, with optional deferred decoding.
class NoiseDataset : public Dataset {
 public:
  explicit NoiseDataset(DType dtype, int64_t side = 12) {
    rows_.fields = {{.name = "images", .shape = {side, side, 3}, .dtype = dtype},
                    {.name = "labels", .dtype = DType::i32, .padding = -1}};
  }
  const BatchLayout& layout() const override { return rows_; }
  uint64_t size() const override { return 10; }
  const std::vector<uint64_t>& shard_begins() const override { return begins_; }
  RecordLocation locate(uint64_t record) const override { return {"noise", 0, record}; }
  const std::vector<std::string>& faults() const override { return faults_; }
  std::string identity() const override { return "noise"; }
  std::unique_ptr<SampleReader> reader() const override { return std::make_unique<Reader>(rows_.fields[0]); }

 private:
  struct Reader final : SampleReader {
    explicit Reader(const Field& images) : field(images) {}
    SampleNotes read(uint64_t record, const SampleKey&, const Row& row) override {
      RandomStream random(9, record);
      for (int64_t i = 0; i < field.shape.count(); ++i)
        if (const auto level = static_cast<uint8_t>(random.below(256)); field.dtype == DType::u8)
          row.span<uint8_t>(0)[static_cast<size_t>(i)] = level;
        else
          row.span<float>(0)[static_cast<size_t>(i)] = level;
      row.span<int32_t>(1)[0] = static_cast<int32_t>(record);
      return {};
    }
    std::optional<SampleNotes> defer(uint64_t record, const SampleKey&, const Row& row, EncodedImage& image) override {
      row.span<int32_t>(1)[0] = static_cast<int32_t>(record);
      image.jpeg.assign(1, std::byte{0});
      return SampleNotes{};
    }
    const Field& field;
  };
  BatchLayout rows_;
  std::vector<uint64_t> begins_{0, 10};
  std::vector<std::string> faults_;
};

const SampleAugmentation kAll{.jitter = {0.4f, 0.4f, 0.4f, 0.1f},
                              .policy = {.policy = AugmentPolicy::rand_augment},
                              .erasing = {.probability = 0.5f}};

// Values of all fields in `batches` batches of all ranks, as one global stream.
std::vector<double> stream_of(const std::shared_ptr<Dataset>& dataset, LoaderOptions options, int batches) {
  std::vector<std::unique_ptr<Loader>> ranks;
  for (options.rank = 0; options.rank < options.ranks; ++options.rank)
    ranks.push_back(std::make_unique<Loader>(dataset, options));
  std::vector<double> all;
  for (int b = 0; b < batches; ++b)
    for (const auto& loader : ranks) {
      const Batch& batch = *loader->next();
      for (int64_t row = 0; row < batch.rows(); ++row) {
        const Row at(batch, row);
        if (batch["images"].dtype() == DType::u8)
          for (const uint8_t level : at.span<uint8_t>(0)) all.push_back(level);
        else
          for (const float level : at.span<float>(0)) all.push_back(double{level});
        for (size_t field = 1; field < batch.fields.size(); ++field)
          for (const int32_t word : at.span<int32_t>(field)) all.push_back(word);
      }
    }
  return all;
}

TEST(Augmented, DependsOnSampleKeyOnly) {
  const auto u8 = augmented(std::make_shared<NoiseDataset>(DType::u8), kAll);
  const auto f32 = augmented(std::make_shared<NoiseDataset>(DType::f32), kAll);
  EXPECT_EQ(u8->identity(), "noise");
  ASSERT_EQ(u8->layout().fields.size(), 3u);
  LoaderOptions options{.batch = 6, .seed = 7, .repeats = 2, .workers = 1};
  const std::vector<double> expected = stream_of(u8, options, 8);
  EXPECT_EQ(stream_of(f32, options, 8), expected) << "levels are whole numbers";
  options.workers = 4;
  EXPECT_EQ(stream_of(u8, options, 8), expected) << "any number of workers";
  options.batch = 3;
  options.ranks = 2;
  EXPECT_EQ(stream_of(u8, options, 8), expected) << "any number of ranks";
  options.cursor = 18;
  EXPECT_EQ(stream_of(u8, options, 5), std::vector<double>(expected.begin() + 3 * expected.size() / 8, expected.end()))
      << "resumed after 3 batches";
  options.seed = 8;
  EXPECT_NE(stream_of(u8, options, 5), std::vector<double>(expected.begin() + 3 * expected.size() / 8, expected.end()));
}

TEST(Augmented, WithoutOptionsIsTheSameDataSet) {
  const auto plain = std::make_shared<NoiseDataset>(DType::u8);
  EXPECT_EQ(augmented(plain, {}), plain);
}

TEST(Augmented, DefersIfPixelsAreUnchanged) {
  const auto source = std::make_shared<NoiseDataset>(DType::u8);
  for (const bool changes : {false, true}) {
    SampleAugmentation augmentation = kAll;
    if (!changes) augmentation = {.erasing = {.probability = 1}};
    const auto dataset = augmented(source, augmentation);
    const Batch batch = make_batch(dataset->layout(), 1);
    EncodedImage image(std::make_shared<HostAllocator>());
    EXPECT_EQ(dataset->reader()->defer(3, {1, 0, 3, 0}, Row(batch, 0), image).has_value(), !changes);
    if (changes) continue;
    EXPECT_GT(Row(batch, 0).span<int32_t>(2)[2], 0) << "the window is drawn all the same";
  }
}

TEST(Augmented, RejectsInvalidOptions) {
  const auto source = std::make_shared<NoiseDataset>(DType::u8);
  expect_error([&] { augmented(source, {.erasing = {.probability = 1, .min_area = 0.5f}}); }, Fault::config,
               "random erasing");
  expect_error([&] { augmented(std::make_shared<NoiseDataset>(DType::i32), kAll); }, Fault::config, "of type i32");
}

TEST(DrawErased, RespectsLimits) {
  constexpr int kDraws = 20000, kSide = 200;
  const ErasingOptions options{.probability = 0.25f};
  int erased = 0, last = 0;
  double areas = 0, squares = 0, logs = 0;
  for (uint64_t i = 0; i < kDraws; ++i) {
    RandomStream random(1, i);
    const Window w = draw_erased(options, kSide, kSide, random);
    if (w.width == 0) continue;
    ++erased;
    ASSERT_TRUE(w.x >= 0 && w.y >= 0 && w.x + w.width <= kSide && w.y + w.height <= kSide);
    const double area = static_cast<double>(w.width) * w.height / (kSide * kSide);
    ASSERT_NEAR(area, 0.175, 0.155 + 0.01);
    areas += area;
    squares += area * area;
    logs += std::log(static_cast<double>(w.height) / w.width);
    last += w.x + w.width == kSide;
  }
  EXPECT_NEAR(erased / static_cast<double>(kDraws), 0.25, 4 * std::sqrt(0.25 * 0.75 / kDraws));
  // Areas up to 0.3 fit at any aspect ratio, larger ones nearly always.
  const double mean = areas / erased, deviation = std::sqrt(squares / erased - mean * mean);
  EXPECT_NEAR(mean, 0.175, 4 * deviation / std::sqrt(erased) + 0.001);
  EXPECT_NEAR(logs / erased, std::log(0.3 * 3.3) / 2, 4 * 0.7 / std::sqrt(erased) + 0.002);
  EXPECT_GT(last, 0) << "the last place is drawn";
}

TEST(SampleOrder, RepeatedAugmentationHasSeparateStreams) {
  const SampleOrder once(10, 1, [](uint64_t) { return size_t{0}; }, {.seed = 7, .batch = 4});
  const SampleOrder thrice(10, 1, [](uint64_t) { return size_t{0}; }, {.seed = 7, .batch = 4, .repeats = 3});
  for (uint64_t position = 0; position < 90; ++position) {
    const SampleKey key = thrice.at(position).key, plain = once.at(position / 3).key;
    EXPECT_EQ(key.sample, plain.sample);
    EXPECT_EQ(key.epoch, plain.epoch);
    EXPECT_EQ(key.repetition, position % 3);
    EXPECT_EQ(key.position, position);
  }
}

TEST(StagedLoader, SwitchesStagesBetweenSteps) {
  const auto open = [](size_t stage) {
    return std::make_shared<NoiseDataset>(DType::u8, 12 + 4 * static_cast<int64_t>(stage));
  };
  // Steps of 2 batches of 3 samples, epochs of 10 samples: stage 2 is due at sample 10, inside the second step; stage 3
  // at sample 20.
  LoaderOptions options{.batch = 3, .seed = 7, .workers = 2};
  StagedLoader staged(open(0), options, {1, 2}, open, 2);
  Loader plain(open(0), options);
  std::vector<int64_t> sizes;
  for (int b = 0; b < 10; ++b) {
    const Batch& batch = *staged.next();
    sizes.push_back(batch["images"].dim(1));
    EXPECT_EQ(batch.samples, plain.next()->samples);
    EXPECT_EQ(batch.cursor, static_cast<uint64_t>(3 * (b + 1)));
  }
  EXPECT_EQ(sizes, (std::vector<int64_t>{12, 12, 12, 12, 16, 16, 16, 16, 20, 20}));
  EXPECT_EQ(staged.stage(), 2u);
  EXPECT_EQ(staged.stats().records, 30u);
  options.cursor = 18;
  StagedLoader resumed(open(0), options, {1, 2}, open, 2);
  EXPECT_EQ(resumed.stage(), 1u);
  EXPECT_EQ(resumed.next()->fields[0].dim(1), 16);
}

}  // namespace
}  // namespace dtrain::data
