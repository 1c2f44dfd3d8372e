#include "dtrain/data/loader.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <set>
#include <thread>

#include "tests/testing.h"

namespace dtrain::data {
namespace {

// Four shards of fake records: pixels encode record and key; chosen records are bad.
class FakeDataset : public Dataset {
 public:
  explicit FakeDataset(uint64_t records, std::set<uint64_t> bad_records = {})
      : bad(std::move(bad_records)), begins_{0, records / 4, records / 3, records - 1, records} {}
  const BatchLayout& layout() const override { return rows; }
  uint64_t size() const override { return begins_.back(); }
  const std::vector<uint64_t>& shard_begins() const override { return begins_; }
  RecordLocation locate(uint64_t record) const override {
    const auto shard = std::upper_bound(begins_.begin(), begins_.end(), record) - begins_.begin() - 1;
    return {concat("shard-", shard), 100 * (record - begins_[shard]), record - begins_[shard]};
  }
  const std::vector<std::string>& faults() const override { return damage; }
  std::string identity() const override { return "fake"; }
  std::unique_ptr<SampleReader> reader() const override { return std::make_unique<Reader>(*this); }

  BatchLayout rows{.fields = {{.name = "pixels", .shape = {1, 1, 3}, .dtype = DType::u8},
                              {.name = "labels", .dtype = DType::i32, .padding = -1}}};
  std::set<uint64_t> bad;
  Fault fault = Fault::data;
  std::vector<std::string> damage;
  mutable std::atomic<int> reads = 0;

 private:
  struct Reader final : SampleReader {
    explicit Reader(const FakeDataset& from) : dataset(from) {}
    SampleNotes read(uint64_t record, const SampleKey& key, const Row& row) override {
      if (record % 3 == 0) std::this_thread::yield();
      ++dataset.reads;
      if (dataset.bad.count(record)) throw Error(dataset.fault, concat("record ", record, " is rotten"));
      const Field& pixels = dataset.rows.fields[0];
      auto* out = static_cast<uint8_t*>(row.raw(0));
      std::memset(out, 0, static_cast<size_t>(pixels.shape.count()) * size_of(pixels.dtype));
      out[0] = static_cast<uint8_t>(record);
      out[1] = static_cast<uint8_t>(key.epoch);
      out[2] = static_cast<uint8_t>(key.position);
      row.span<int32_t>(1)[0] = static_cast<int32_t>(record);
      return {
          .damage = record % 5 == 0 ? "half of it is grey" : "", .oriented = record % 10 == 1, .turned = record == 1};
    }
    const FakeDataset& dataset;
  };
  std::vector<uint64_t> begins_;
};

LoaderOptions small(int64_t batch) {
  LoaderOptions options;
  options.batch = batch;
  options.seed = 7;
  options.workers = 2;
  return options;
}

struct Seen {
  std::vector<uint64_t> samples;
  std::vector<int> labels, pixels;
  bool operator==(const Seen&) const = default;
  void add(const Batch& batch) {
    samples.insert(samples.end(), batch.samples.begin(), batch.samples.end());
    for (int32_t label : batch["labels"].span<int32_t>()) labels.push_back(label);
    for (uint8_t pixel : batch["pixels"].span<uint8_t>()) pixels.push_back(pixel);
  }
};

// `batches` batches of every rank, as one global stream.
Seen stream(std::shared_ptr<Dataset> dataset, LoaderOptions options, int batches) {
  std::vector<std::unique_ptr<Loader>> ranks;
  for (options.rank = 0; options.rank < options.ranks; ++options.rank)
    ranks.push_back(std::make_unique<Loader>(dataset, options));
  Seen seen;
  for (int b = 0; b < batches; ++b)
    for (auto& loader : ranks) seen.add(*loader->next());
  return seen;
}

// Message of the Error thrown by `body`; fails without one.
template <class Body>
std::string error_of(Body body, Fault fault) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), fault) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

TEST(Loader, StreamIsEqualForAnyNumberOfWorkersAndSlots) {
  auto dataset = std::make_shared<FakeDataset>(50);
  LoaderOptions options = small(8);
  options.workers = 1;
  const Seen one = stream(dataset, options, 20);
  for (int workers : {2, 8})
    for (int slots : {2, 5}) {
      options.workers = workers;
      options.slots = slots;
      EXPECT_EQ(stream(dataset, options, 20), one) << workers << " workers, " << slots << " slots";
    }
  options.seed = 8;
  EXPECT_NE(stream(dataset, options, 20).samples, one.samples);
}

TEST(Loader, StreamIsEqualForAnyNumberOfRanks) {
  auto dataset = std::make_shared<FakeDataset>(50, std::set<uint64_t>{3, 4, 30});
  LoaderOptions options = small(8);
  options.skip_bad_records = true;
  const Seen one = stream(dataset, options, 20);
  for (int ranks : {2, 4}) {
    options.ranks = ranks;
    options.batch = 8 / ranks;
    EXPECT_EQ(stream(dataset, options, 20), one) << ranks << " ranks";
  }
}

TEST(Loader, EpochsArePermutationsAndBatchesStraddleThem) {
  const Seen seen = stream(std::make_shared<FakeDataset>(50), small(8), 25);
  for (int epoch = 0; epoch < 4; ++epoch) {
    std::set<uint64_t> visited(seen.samples.begin() + epoch * 50, seen.samples.begin() + (epoch + 1) * 50);
    EXPECT_EQ(visited.size(), 50u);
    EXPECT_EQ(seen.pixels[(epoch * 50 + 1) * 3 + 1], epoch);
  }
  for (size_t i = 0; i < seen.samples.size(); ++i) {
    EXPECT_EQ(seen.pixels[3 * i], static_cast<int>(seen.samples[i]));
    EXPECT_EQ(seen.labels[i], static_cast<int>(seen.samples[i]));
    EXPECT_EQ(seen.pixels[3 * i + 2], static_cast<int>(i % 256));
  }
}

TEST(Loader, ResumesAtAnyCursor) {
  auto dataset = std::make_shared<FakeDataset>(50);
  LoaderOptions options = small(4);
  const Seen whole = stream(dataset, options, 40);
  for (uint64_t cursor : {4, 48, 51, 100}) {
    options.cursor = cursor;
    const Seen rest = stream(dataset, options, 10);
    EXPECT_TRUE(std::equal(rest.samples.begin(), rest.samples.end(), whole.samples.begin() + cursor)) << cursor;
    EXPECT_TRUE(std::equal(rest.pixels.begin(), rest.pixels.end(), whole.pixels.begin() + 3 * cursor)) << cursor;
  }
  options.cursor = 6;
  Loader loader(dataset, options);
  loader.next();
  EXPECT_EQ(loader.next()->cursor, 14u);
}

TEST(Loader, PrefetchIsBoundedBySlots) {
  auto dataset = std::make_shared<FakeDataset>(50);
  Loader loader(dataset, small(8));
  for (int b = 1; b <= 5; ++b) {
    const Batch& batch = *loader.next();
    Seen before, after;
    before.add(batch);
    while (dataset->reads < (b + 2) * 8) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_EQ(dataset->reads, (b + 2) * 8);
    after.add(batch);
    EXPECT_EQ(before, after);
  }
}

TEST(Loader, EvaluationVisitsEachSampleOnceAndPads) {
  auto dataset = std::make_shared<FakeDataset>(50);
  for (int ranks : {1, 2, 4}) {
    LoaderOptions options = small(8);
    options.training = false;
    options.ranks = ranks;
    std::vector<int> visits(50);
    for (options.rank = 0; options.rank < ranks; ++options.rank) {
      Loader loader(dataset, options);
      int batches = 0, padding = 0;
      while (const Batch* batch = loader.next()) {
        ++batches;
        int64_t valid = 0;
        for (int64_t row = 0; row < batch->rows(); ++row) {
          const int32_t label = (*batch)["labels"].span<int32_t>()[row];
          EXPECT_EQ(label >= 0, batch->row_valid[row] == 1);
          label < 0 ? ++padding : (++visits[label], ++valid);
        }
        EXPECT_EQ(batch->valid, valid);
        if (batches == 1) {
          EXPECT_EQ(batch->cursor, std::min(50u, 8u * ranks));
        }
      }
      EXPECT_EQ(batches, (50 + 8 * ranks - 1) / (8 * ranks));
      EXPECT_EQ(loader.next(), nullptr);
      EXPECT_EQ(loader.stats().records, static_cast<uint64_t>(batches * 8 - padding));
    }
    EXPECT_EQ(std::count(visits.begin(), visits.end(), 1), 50) << ranks << " ranks";
  }
}

TEST(Loader, BadRecordThrowsFromItsBatchWithLocation) {
  auto dataset = std::make_shared<FakeDataset>(50, std::set<uint64_t>{17, 19});
  LoaderOptions options = small(8);
  options.training = false;
  options.workers = 4;
  Loader loader(dataset, options);
  EXPECT_NE(loader.next(), nullptr);
  EXPECT_NE(loader.next(), nullptr);
  const std::string message = "shard-2: record 1 at byte 100: record 17 is rotten";
  EXPECT_EQ(error_of([&] { loader.next(); }, Fault::data), message);
  EXPECT_EQ(error_of([&] { loader.next(); }, Fault::data), message) << "the error stays";
}

TEST(Loader, SkippedRecordIsReplacedInPlace) {
  const std::set<uint64_t> bad = {3, 4, 15};  // shards are [0, 12), [12, 16), [16, 49), [49, 50)
  LoaderOptions options = small(8);
  const Seen clean = stream(std::make_shared<FakeDataset>(50), options, 20);
  options.skip_bad_records = true;
  const Seen skipped = stream(std::make_shared<FakeDataset>(50, bad), options, 20);
  for (size_t i = 0; i < clean.samples.size(); ++i) {
    const uint64_t planned = clean.samples[i];
    const uint64_t expected = planned == 3 || planned == 4 ? 5 : planned == 15 ? 12 : planned;
    EXPECT_EQ(skipped.samples[i], expected);
    EXPECT_EQ(skipped.labels[i], static_cast<int>(expected));
  }
}

TEST(Loader, SkippingCountsEachBadRecordOnceAndKeepsTheFirstFaults) {
  auto dataset = std::make_shared<FakeDataset>(50, std::set<uint64_t>{3, 4, 15});
  LoaderOptions options = small(10);
  options.skip_bad_records = true;
  options.bad_record_budget = 3;
  Loader loader(dataset, options);
  for (int b = 0; b < 20; ++b) loader.next();
  const LoaderStats stats = loader.stats();
  EXPECT_EQ(stats.records, 200u);
  EXPECT_EQ(stats.bad_records, 3u);
  EXPECT_GE(stats.wait_seconds, 0);
  ASSERT_EQ(stats.faults.size(), 3u);
  const auto fault =
      std::find(stats.faults.begin(), stats.faults.end(), "shard-1: record 3 at byte 300: record 15 is rotten");
  EXPECT_NE(fault, stats.faults.end());
}

TEST(Loader, CountsDamagedImagesOfDeliveredBatches) {
  LoaderOptions options = small(10);
  Loader loader(std::make_shared<FakeDataset>(50), options);
  for (int b = 0; b < 10; ++b) loader.next();
  EXPECT_EQ(loader.stats().damaged_images, 20u);
  std::vector<std::string> damages = loader.stats().damages;
  std::ranges::sort(damages);
  ASSERT_EQ(damages.size(), 10u) << "each is named once";
  EXPECT_NE(damages.front().find("record 0 at byte "), std::string::npos) << damages.front();
  EXPECT_NE(damages.front().find(": half of it is grey"), std::string::npos) << damages.front();
}

TEST(Loader, CountsOrientedImagesOfDeliveredBatches) {
  Loader loader(std::make_shared<FakeDataset>(50), small(10));
  for (int b = 0; b < 10; ++b) loader.next();  // two epochs; further samples are prefetched
  EXPECT_EQ(loader.stats().oriented_images, 10u);
  EXPECT_EQ(loader.stats().turned_images, 2u);
}

TEST(LoaderStats, MergingKeepsRecordsUnique) {
  LoaderStats all{.records = 5, .bad_records = 1, .faults = {"a"}};
  LoaderStats more{.records = 3, .oriented_images = 2, .bad_records = 12};
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"}) more.faults.push_back(name);
  all.add(more);
  EXPECT_EQ(all.records, 8u);
  EXPECT_EQ(all.oriented_images, 2u);
  EXPECT_EQ(all.bad_records, 13u);
  EXPECT_EQ(all.faults, std::vector<std::string>(more.faults.begin(), more.faults.begin() + 10));
}

TEST(Loader, EvaluationPadsASkippedRecord) {
  auto dataset = std::make_shared<FakeDataset>(50, std::set<uint64_t>{1});
  LoaderOptions options = small(8);
  options.training = false;
  options.skip_bad_records = true;
  Loader loader(dataset, options);
  const Batch* batch = loader.next();
  EXPECT_EQ(batch->valid, 7);
  EXPECT_EQ(batch->row_valid, (std::vector<uint8_t>{1, 0, 1, 1, 1, 1, 1, 1}));
  EXPECT_EQ((*batch)["labels"].span<int32_t>()[1], -1);
  EXPECT_EQ((*batch)["pixels"].span<uint8_t>()[3], 0);
  EXPECT_EQ((*batch)["labels"].span<int32_t>()[2], 2);
}

TEST(Loader, BudgetEndsTheRun) {
  auto dataset = std::make_shared<FakeDataset>(50, std::set<uint64_t>{3, 4, 15});
  LoaderOptions options = small(8);
  options.skip_bad_records = true;
  options.bad_record_budget = 2;
  Loader loader(dataset, options);
  const std::string message = error_of(
      [&] {
        for (int b = 0; b < 20; ++b) loader.next();
      },
      Fault::data);
  EXPECT_NE(message.find("more bad records than the budget of 2: shard-"), std::string::npos) << message;
}

TEST(Loader, ShardWithNoGoodRecordCannotBeSkipped) {
  LoaderOptions options = small(50);
  options.skip_bad_records = true;
  Loader loader(std::make_shared<FakeDataset>(50, std::set<uint64_t>{49}), options);
  const std::string message = error_of([&] { loader.next(); }, Fault::data);
  EXPECT_EQ(message, "shard-3: no good record to replace a bad one with");
}

TEST(Loader, OnlyDataFaultsAreSkipped) {
  auto dataset = std::make_shared<FakeDataset>(50, std::set<uint64_t>{3});
  dataset->fault = Fault::resource;
  LoaderOptions options = small(50);
  options.skip_bad_records = true;
  Loader loader(dataset, options);
  error_of([&] { loader.next(); }, Fault::resource);
}

TEST(Loader, DamagedShardsCountAsBadRecords) {
  auto dataset = std::make_shared<FakeDataset>(50);
  dataset->damage = {"shard-2: cut"};
  LoaderOptions options = small(8);
  EXPECT_EQ(error_of([&] { Loader(dataset, options); }, Fault::data), "shard-2: cut");
  options.skip_bad_records = true;
  EXPECT_EQ(Loader(dataset, options).stats().bad_records, 1u);
  options.bad_record_budget = 0;
  error_of([&] { Loader(dataset, options); }, Fault::data);
}

TEST(Loader, RejectsBadOptions) {
  auto dataset = std::make_shared<FakeDataset>(50);
  for (auto change : std::vector<void (*)(LoaderOptions&)>{
           [](LoaderOptions& o) { o.batch = 0; }, [](LoaderOptions& o) { o.rank = 1; },
           [](LoaderOptions& o) { o.workers = -1; }, [](LoaderOptions& o) { o.slots = 1; }}) {
    LoaderOptions options = small(8);
    change(options);
    error_of([&] { Loader(dataset, options); }, Fault::config);
  }
}

// Slots fit rows of any size and type; rows are contiguous.
TEST(Loader, UsesTheDataSetsLayout) {
  const Field fields[] = {{.name = "pixels", .shape = {5, 7, 3}, .dtype = DType::u8},
                          {.name = "pixels", .shape = {5, 7, 3}},
                          {.name = "pixels", .shape = {2, 300}, .dtype = DType::i64}};
  for (const Field& field : fields) {
    auto dataset = std::make_shared<FakeDataset>(50);
    dataset->rows.fields[0] = field;
    LoaderOptions options = small(8);
    options.training = false;
    Loader loader(dataset, options);
    const Batch& batch = *loader.next();
    const Tensor& pixels = batch["pixels"];
    EXPECT_EQ(pixels.dtype(), field.dtype);
    EXPECT_EQ(pixels.dim(0), 8);
    for (int i = 0; i < field.shape.rank(); ++i) EXPECT_EQ(pixels.dim(1 + i), field.shape[i]);
    for (int64_t row = 0; row < 8; ++row) {
      EXPECT_EQ(batch["labels"].span<int32_t>()[row], row);
      EXPECT_EQ(*static_cast<const uint8_t*>(pixels.slice(row, row + 1).raw()), row);
    }
  }
}

TEST(Loader, RejectsInconsistentDataSets) {
  class Contradiction final : public FakeDataset {
   public:
    using FakeDataset::FakeDataset;
    const std::vector<uint64_t>& shard_begins() const override { return begins; }
    std::unique_ptr<SampleReader> reader() const override { return nullptr; }
    std::vector<uint64_t> begins{0, 50};
  };
  auto dataset = std::make_shared<Contradiction>(50);
  expect_error([&] { Loader(dataset, small(8)); }, Fault::config, "gave no reader");
  for (const std::vector<uint64_t>& begins : std::vector<std::vector<uint64_t>>{{}, {0, 49}, {1, 50}, {0, 51, 50}}) {
    dataset->begins = begins;
    expect_error([&] { Loader(dataset, small(8)); }, Fault::config, "do not tile");
  }
  auto empty = std::make_shared<FakeDataset>(50);
  empty->rows.fields[0].shape = {0, 1, 3};
  expect_error([&] { Loader(empty, small(8)); }, Fault::config, "field 'pixels' is [0, 1, 3]");
  empty->rows = {};
  expect_error([&] { Loader(empty, small(8)); }, Fault::config, "batch layout: no fields");
}

TEST(Loader, StopsAtAnyTime) {
  auto dataset = std::make_shared<FakeDataset>(50);
  for (int i = 0; i < 50; ++i) {
    Loader loader(dataset, small(8));
    if (i % 2) loader.next();
  }
}

}  // namespace
}  // namespace dtrain::data
