// Loader on a data set with several layouts.
#include <algorithm>
#include <map>
#include <mutex>
#include <set>

#include "dtrain/data/loader.h"
#include "tests/testing.h"

namespace dtrain::data {
namespace {

// Records in two shards; every third one is portrait. Pixels encode the record and its epoch.
class MixedDataset final : public Dataset {
 public:
  explicit MixedDataset(uint64_t records, std::set<uint64_t> bad_records = {})
      : bad(std::move(bad_records)), begins_{0, records / 2, records} {}
  const BatchLayout& layout() const override { return layouts_.front(); }
  std::span<const BatchLayout> layouts() const override { return layouts_; }
  size_t layout_of(uint64_t record) const override { return record % 3 == 1; }
  uint64_t size() const override { return begins_.back(); }
  const std::vector<uint64_t>& shard_begins() const override { return begins_; }
  RecordLocation locate(uint64_t record) const override { return {"mixed", 0, record}; }
  const std::vector<std::string>& faults() const override { return faults_; }
  std::string identity() const override { return "mixed"; }
  std::unique_ptr<SampleReader> reader() const override { return std::make_unique<Reader>(*this); }
  void prefetch(uint64_t record) const override {
    const std::lock_guard lock(mutex);
    ++prefetched[record];
    ++prefetches;
  }
  bool can_prefetch() const override { return remote; }

  std::set<uint64_t> bad;
  bool remote = false;
  mutable std::mutex mutex;
  mutable std::map<uint64_t, int> prefetched;  // less the reads since
  mutable int prefetches = 0, reads = 0, unexpected = 0;

 private:
  struct Reader final : SampleReader {
    explicit Reader(const MixedDataset& from) : dataset(from) {}
    SampleNotes read(uint64_t record, const SampleKey& key, const Row& row) override {
      {
        const std::lock_guard lock(dataset.mutex);
        ++dataset.reads;
        dataset.unexpected += --dataset.prefetched[record] < 0;
      }
      if (dataset.bad.contains(record)) throw Error(Fault::data, "rotten");
      const std::span<int32_t> pixels = row.span<int32_t>(0);
      EXPECT_EQ(pixels.size(), dataset.layout_of(record) == 0 ? 8u : 6u);
      std::ranges::fill(pixels, static_cast<int32_t>(key.epoch));
      pixels.front() = static_cast<int32_t>(record);
      return {};
    }
    const MixedDataset& dataset;
  };
  std::vector<BatchLayout> layouts_{
      {.variant = "wide", .fields = {{.name = "pixels", .shape = {2, 4}, .dtype = DType::i32, .padding = -1}}},
      {.variant = "upright", .fields = {{.name = "pixels", .shape = {3, 2}, .dtype = DType::i32, .padding = -1}}}};
  std::vector<uint64_t> begins_;
  std::vector<std::string> faults_;
};

struct GlobalBatch {
  std::string variant;
  std::vector<uint64_t> samples;
  std::vector<int32_t> pixels;
  uint64_t cursor = 0;
  bool operator==(const GlobalBatch&) const = default;
};

// Steps of `micro_steps` batches per rank: everything that the ranks read together.
std::vector<GlobalBatch> mixed_steps(std::shared_ptr<Dataset> dataset, LoaderOptions options, int micro_steps,
                                     int steps) {
  std::vector<std::unique_ptr<Loader>> ranks;
  for (options.rank = 0; options.rank < options.ranks; ++options.rank)
    ranks.push_back(std::make_unique<Loader>(dataset, options));
  std::vector<GlobalBatch> all(static_cast<size_t>(steps));
  for (GlobalBatch& step : all)
    for (int m = 0; m < micro_steps; ++m)
      for (auto& loader : ranks) {
        const Batch& batch = *loader->next();
        if (step.variant.empty()) step.variant = batch.layout.variant;
        EXPECT_EQ(step.variant, batch.layout.variant);
        step.samples.insert(step.samples.end(), batch.samples.begin(), batch.samples.end());
        const auto pixels = batch["pixels"].span<int32_t>();
        step.pixels.insert(step.pixels.end(), pixels.begin(), pixels.end());
        step.cursor = batch.cursor;
      }
  return all;
}

LoaderOptions mixed_options(int64_t batch, int ranks = 1, int64_t group_batch = 0) {
  return {.batch = batch, .seed = 7, .ranks = ranks, .group_batch = group_batch, .workers = 2};
}

TEST(LoaderLayouts, StepsAreIndependentOfRanksAndMicroSteps) {
  auto dataset = std::make_shared<MixedDataset>(50);
  const std::vector<GlobalBatch> whole = mixed_steps(dataset, mixed_options(8), 1, 30);
  EXPECT_EQ(mixed_steps(dataset, mixed_options(4, 2), 1, 30), whole);
  EXPECT_EQ(mixed_steps(dataset, mixed_options(2, 4), 1, 30), whole);
  EXPECT_EQ(mixed_steps(dataset, mixed_options(2, 1, 8), 4, 30), whole);
  EXPECT_EQ(mixed_steps(dataset, mixed_options(2, 2, 8), 2, 30), whole);
  std::map<std::string, int> steps;
  for (const GlobalBatch& step : whole) {
    ++steps[step.variant];
    for (const uint64_t sample : step.samples) EXPECT_EQ(step.variant, sample % 3 == 1 ? "upright" : "wide");
  }
  EXPECT_NEAR(steps["upright"], 30 * 17 / 50.0, 1);
}

TEST(LoaderLayouts, ResumeAtTheEndOfAnyStepWithAnyNumberOfRanks) {
  auto dataset = std::make_shared<MixedDataset>(50);
  const std::vector<GlobalBatch> whole = mixed_steps(dataset, mixed_options(8), 1, 40);
  for (const size_t step : {size_t{1}, size_t{7}, size_t{29}}) {
    LoaderOptions options = mixed_options(2, 2, 8);
    options.cursor = whole[step - 1].cursor;
    EXPECT_EQ(options.cursor, step * 8);
    const std::vector<GlobalBatch> rest = mixed_steps(dataset, options, 2, 10);
    EXPECT_TRUE(std::equal(rest.begin(), rest.end(), whole.begin() + static_cast<ptrdiff_t>(step)));
  }
  LoaderOptions options = mixed_options(8);
  options.cursor = 12;
  expect_error([&] { Loader(dataset, options); }, Fault::config, "12 samples consumed");
}

TEST(LoaderLayouts, EachLayoutHasItsEpochs) {
  std::map<std::string, std::vector<uint64_t>> streams;
  for (const GlobalBatch& step : mixed_steps(std::make_shared<MixedDataset>(50), mixed_options(8), 1, 40)) {
    const size_t each = step.pixels.size() / step.samples.size(), records = step.variant == "wide" ? 33 : 17;
    for (size_t i = 0; i < step.samples.size(); ++i) {
      std::vector<uint64_t>& stream = streams[step.variant];
      EXPECT_EQ(step.pixels[each * i], static_cast<int32_t>(step.samples[i]));
      EXPECT_EQ(step.pixels[each * i + 1], static_cast<int32_t>(stream.size() / records));
      stream.push_back(step.samples[i]);
    }
  }
  EXPECT_EQ(std::set<uint64_t>(streams["wide"].begin(), streams["wide"].begin() + 33).size(), 33u);
  EXPECT_EQ(std::set<uint64_t>(streams["upright"].begin(), streams["upright"].begin() + 17).size(), 17u);
}

TEST(LoaderLayouts, EvaluationVisitsEachRecordOnceInTheSameNumberOfBatches) {
  auto dataset = std::make_shared<MixedDataset>(50);
  for (const int ranks : {1, 2, 4}) {
    std::vector<int> visits(50);
    LoaderOptions options = mixed_options(4, ranks);
    options.training = false;
    const int64_t rows = 4 * ranks;
    for (options.rank = 0; options.rank < ranks; ++options.rank) {
      Loader loader(dataset, options);
      int64_t batches = 0;
      uint64_t cursor = 0;
      while (const Batch* batch = loader.next()) {
        ++batches;
        cursor = batch->cursor;
        const Tensor& pixels = (*batch)["pixels"];
        for (int64_t row = 0; row < batch->rows(); ++row) {
          const int32_t record = pixels.slice(row, row + 1).span<int32_t>()[0];
          EXPECT_EQ(record >= 0, batch->row_valid[row] == 1);
          if (record < 0) continue;
          ++visits[record];
          EXPECT_EQ(batch->layout.variant, record % 3 == 1 ? "upright" : "wide");
        }
      }
      EXPECT_EQ(batches, (33 + rows - 1) / rows + (17 + rows - 1) / rows);
      EXPECT_EQ(cursor, 50u);
    }
    EXPECT_EQ(std::ranges::count(visits, 1), 50);
  }
}

TEST(LoaderLayouts, BadRecordIsReplacedWithinLayoutAndShard) {
  const std::vector<GlobalBatch> sound = mixed_steps(std::make_shared<MixedDataset>(50), mixed_options(8), 1, 30);
  LoaderOptions options = mixed_options(8);
  options.skip_bad_records = true;
  const std::vector<GlobalBatch> mended =
      mixed_steps(std::make_shared<MixedDataset>(50, std::set<uint64_t>{1, 24, 22}), options, 1, 30);
  const std::map<uint64_t, uint64_t> replacement = {{1, 4}, {22, 4}, {24, 0}};
  int replaced = 0;
  for (size_t s = 0; s < sound.size(); ++s)
    for (size_t i = 0; i < sound[s].samples.size(); ++i) {
      const auto found = replacement.find(sound[s].samples[i]);
      const uint64_t expected = found == replacement.end() ? sound[s].samples[i] : found->second;
      EXPECT_EQ(mended[s].samples[i], expected);
      replaced += expected != sound[s].samples[i];
    }
  EXPECT_GT(replaced, 5);
}

TEST(LoaderLayouts, RejectsStepsThatDoNotDivideIntoBatches) {
  auto dataset = std::make_shared<MixedDataset>(50);
  expect_error([&] { Loader(dataset, mixed_options(4, 2, 12)); }, Fault::config, "12 samples a step");
}

TEST(LoaderLayouts, PrefetchesEachTrainingSampleBeforeItIsRead) {
  for (const bool training : {true, false})
    for (const int64_t repeats : {1, 3}) {
      auto dataset = std::make_shared<MixedDataset>(500);
      dataset->remote = true;
      LoaderOptions options = mixed_options(4, 2);
      options.training = training;
      options.repeats = repeats;
      const int steps = training ? 40 : 63;  // 42 of one layout, 21 of the other
      mixed_steps(dataset, options, 1, steps);
      if (training) {
        EXPECT_EQ(dataset->unexpected, 0);
        EXPECT_GE(dataset->prefetches, dataset->reads);
      } else {
        EXPECT_EQ(dataset->prefetches, 0);
        EXPECT_EQ(dataset->reads, 500);
      }
    }
  auto local = std::make_shared<MixedDataset>(500);
  mixed_steps(local, mixed_options(4), 1, 10);
  EXPECT_EQ(local->prefetches, 0);
}

}  // namespace
}  // namespace dtrain::data
