// Batch layouts, rows and batches, for labelled images and for ragged boxes.
#include "dtrain/data/batch.h"

#include <algorithm>

#include "dtrain/data/loader.h"
#include "tests/testing.h"

namespace dtrain::data {
namespace {

constexpr int64_t kMostBoxes = 3;
enum DetectionField : size_t { kImages, kBoxes, kClasses, kBoxCount, kScale };

BatchLayout detection(int64_t height, int64_t width, const std::string& variant) {
  return {
      .variant = variant,
      .fields = {{.name = "images", .shape = {height, width, 3}, .dtype = DType::u8},
                 {.name = "boxes", .shape = {kMostBoxes, 4}, .count = "box_count"},
                 {.name = "classes", .shape = {kMostBoxes}, .dtype = DType::i64, .padding = -1, .count = "box_count"},
                 {.name = "box_count", .dtype = DType::i32},
                 {.name = "scale", .padding = 1}}};
}

template <class T>
std::vector<T> values(const Batch& batch, const std::string& name) {
  const auto span = batch[name].span<T>();
  return {span.begin(), span.end()};
}

TEST(Batch, HasATensorForEachField) {
  const Batch batch = make_batch(detection(4, 6, "landscape"), 2);
  EXPECT_EQ(batch.layout.variant, "landscape");
  EXPECT_EQ(batch.layout, detection(4, 6, "landscape"));
  EXPECT_NE(batch.layout, detection(6, 4, "portrait"));
  EXPECT_EQ(batch.rows(), 2);
  EXPECT_EQ(batch.valid, 0);
  EXPECT_EQ(batch["images"].shape(), (Shape{2, 4, 6, 3}));
  EXPECT_EQ(batch["boxes"].shape(), (Shape{2, 3, 4}));
  EXPECT_EQ(batch["boxes"].dtype(), DType::f32);
  EXPECT_EQ(batch["box_count"].shape(), Shape{2});
  for (const Tensor& field : batch.fields) EXPECT_EQ(reinterpret_cast<uintptr_t>(field.raw()) % kAlignment, 0u);
  expect_error([&] { batch["labels"]; }, Fault::config,
               "a batch has no field 'labels': it has images, boxes, classes, box_count, scale");
}

TEST(Batch, RowsAreIndependent) {
  const Batch batch = make_batch(detection(1, 2, ""), 3);
  for (int64_t i = 0; i < 3; ++i) Row(batch, i).pad();
  const Row row(batch, 1);
  std::ranges::fill(row.span<uint8_t>(kImages), 9);
  row.write<float>(kBoxes, std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8});
  row.write<int64_t>(kClasses, std::vector<int64_t>{30, 40});
  *static_cast<float*>(row.raw(kScale)) = 0.5f;
  EXPECT_EQ(values<uint8_t>(batch, "images"),
            (std::vector<uint8_t>{0, 0, 0, 0, 0, 0, 9, 9, 9, 9, 9, 9, 0, 0, 0, 0, 0, 0}));
  std::vector<float> boxes(36);
  for (size_t i = 0; i < 8; ++i) boxes[12 + i] = static_cast<float>(i + 1);
  EXPECT_EQ(values<float>(batch, "boxes"), boxes);
  EXPECT_EQ(values<int64_t>(batch, "classes"), (std::vector<int64_t>{-1, -1, -1, 30, 40, -1, -1, -1, -1}));
  EXPECT_EQ(values<int32_t>(batch, "box_count"), (std::vector<int32_t>{0, 2, 0}));
  EXPECT_EQ(values<float>(batch, "scale"), (std::vector<float>{1, 0.5f, 1}));
  // Overwrites leftovers of an earlier sample behind the last entry.
  row.write<int64_t>(kClasses, {});
  EXPECT_EQ(values<int64_t>(batch, "classes"), std::vector<int64_t>(9, -1));
  EXPECT_EQ(values<int32_t>(batch, "box_count"), (std::vector<int32_t>{0, 0, 0}));
}

TEST(Batch, RejectsMismatchedFields) {
  const Batch batch = make_batch(detection(1, 1, ""), 1);
  const Row row(batch, 0);
  expect_error([&] { row.write<float>(kBoxes, std::vector<float>(16)); }, Fault::data, "4 boxes, expected at most 3");
  expect_error([&] { row.write<float>(kBoxes, std::vector<float>(6)); }, Fault::config, "expected a multiple of 4");
  expect_error([&] { row.write<float>(kScale, std::vector<float>(1)); }, Fault::config, "'scale' is not ragged");
  expect_error([&] { row.write<float>(kClasses, std::vector<float>(1)); }, Fault::config, "accessed as f32");
  expect_error([&] { row.span<float>(kImages); }, Fault::config, "tensor holds u8, accessed as f32");
  expect_error([&] { row.raw(5); }, Fault::config, "field 5 of a batch of 5 fields");
  expect_error([&] { Row(batch, 1); }, Fault::config, "row 1 of a batch of 1");
  expect_error([&] { Batch{.layout = batch.layout}["boxes"]; }, Fault::config, "without the tensor of its field");
}

TEST(BatchLayout, RejectsInvalidLayouts) {
  const auto refuses = [](const std::vector<Field>& fields, const std::string& message) {
    expect_error([&] { make_batch({.fields = fields}, 1); }, Fault::config, message);
  };
  const Field images{.name = "images", .shape = {2, 2, 3}};
  refuses({}, "no fields");
  refuses({{.shape = {1}}}, "a field without a name");
  refuses({images, images}, "two fields are named 'images'");
  refuses({{.name = "images", .shape = {2, 0, 3}}}, "field 'images' is [2, 0, 3]: each extent must be positive");
  refuses({{.name = "images", .dtype = DType::bf16}}, "field 'images' is bf16: expected f32, i32, i64 or u8");
  refuses({{.name = "boxes", .shape = {9, 4}, .count = "n"}}, "no field 'n', the count of 'boxes'");
  refuses({{.name = "boxes", .shape = {9, 4}, .count = "n"}, {.name = "n"}}, "expected i32 [], found f32 []");
  refuses({{.name = "box", .count = "n"}, {.name = "n", .dtype = DType::i32}}, "it cannot be ragged");
  expect_error([&] { make_batch({.fields = {images}}, 0); }, Fault::config, "a batch of 0 rows");
}

// Record i has i boxes; a record with too many is a bad record.
class BoxSets final : public Dataset {
 public:
  const BatchLayout& layout() const override { return layout_; }
  uint64_t size() const override { return begins_.back(); }
  const std::vector<uint64_t>& shard_begins() const override { return begins_; }
  RecordLocation locate(uint64_t record) const override { return {"boxes", 0, record}; }
  const std::vector<std::string>& faults() const override { return faults_; }
  std::unique_ptr<SampleReader> reader() const override { return std::make_unique<Reader>(); }
  std::string identity() const override { return "boxes"; }

 private:
  struct Reader final : SampleReader {
    SampleNotes read(uint64_t record, const SampleKey&, const Row& row) override {
      std::ranges::fill(row.span<uint8_t>(kImages), static_cast<uint8_t>(record));
      const std::vector<float> boxes(4 * record, static_cast<float>(record));
      const std::vector<int64_t> classes(record, static_cast<int64_t>(record));
      row.write<float>(kBoxes, boxes);
      row.write<int64_t>(kClasses, classes);
      row.span<float>(kScale)[0] = 2;
      return {};
    }
  };
  BatchLayout layout_ = detection(1, 1, "square");
  std::vector<uint64_t> begins_{0, 6};
  std::vector<std::string> faults_;
};

TEST(Loader, SupportsRaggedLayoutsAndPadding) {
  Loader loader(std::make_shared<BoxSets>(), {.batch = 4, .training = false, .workers = 2, .skip_bad_records = true});
  const Batch* batch = loader.next();
  ASSERT_NE(batch, nullptr);
  EXPECT_EQ(batch->layout.variant, "square");
  EXPECT_EQ(values<int32_t>(*batch, "box_count"), (std::vector<int32_t>{0, 1, 2, 3}));
  EXPECT_EQ(values<int64_t>(*batch, "classes"), (std::vector<int64_t>{-1, -1, -1, 1, -1, -1, 2, 2, -1, 3, 3, 3}));
  EXPECT_EQ(batch->row_valid, (std::vector<uint8_t>{1, 1, 1, 1}));
  batch = loader.next();
  ASSERT_NE(batch, nullptr);
  EXPECT_EQ(batch->valid, 0);
  EXPECT_EQ(batch->row_valid, (std::vector<uint8_t>(4, 0)));
  EXPECT_EQ(values<int32_t>(*batch, "box_count"), std::vector<int32_t>(4, 0));
  EXPECT_EQ(values<float>(*batch, "boxes"), std::vector<float>(48, 0));
  EXPECT_EQ(values<float>(*batch, "scale"), std::vector<float>(4, 1));
  EXPECT_EQ(loader.stats().bad_records, 2u);
  EXPECT_EQ(loader.stats().records, 4u);
  EXPECT_EQ(loader.next(), nullptr);
}

}  // namespace
}  // namespace dtrain::data
