// Shapes, element types, devices and the error type.
#include "dtrain/core/types.h"

#include "tests/testing.h"

namespace dtrain {
namespace {

TEST(Types, Shape) {
  const Shape shape{16, 56, 0, 64};
  EXPECT_EQ(shape.rank(), 4);
  EXPECT_EQ(shape.count(), 0);
  EXPECT_EQ(shape.to_string(), "[16, 56, 0, 64]");
  EXPECT_EQ(Shape{}.count(), 1);
  EXPECT_EQ(Shape{}.to_string(), "[]");
  EXPECT_EQ((Shape{int64_t{1} << 20, int64_t{1} << 20}.count()), int64_t{1} << 40);
  Shape grown{2};
  grown.append(3);
  EXPECT_EQ(grown, (Shape{2, 3}));
  EXPECT_NE(grown, (Shape{2, 3, 1}));
  EXPECT_NE(grown, (Shape{3, 2}));
}

TEST(Types, ShapeRefuses) {
  expect_error([] { Shape({1, -2}); }, Fault::config, "-2");
  expect_error([] { Shape({1, 1, 1, 1, 1, 1, 1}); }, Fault::config, "rank 7");
  expect_error(
      [] {
        Shape full{1, 1, 1, 1, 1, 1};
        full.append(1);
      },
      Fault::config, "rank 6");
  // Element counts or sizes in bytes that overflow.
  constexpr int64_t k2To30 = int64_t{1} << 30;
  expect_error([] { Shape({k2To30, k2To30}); }, Fault::config, "shape [1073741824, 1073741824]: more than");
  expect_error([] { Shape({int64_t{1} << 32, int64_t{1} << 32}); }, Fault::config, "elements");
  expect_error([] { Shape({k2To30, k2To30, 0}); }, Fault::config, "elements");
  expect_error([] { Shape{k2To30}.append(k2To30); }, Fault::config, "elements");
}

TEST(Types, ShapeRefusesADimensionThatItDoesNotHave) {
  const Shape shape{3, 4};
  EXPECT_EQ(shape[1], 4);
  for (const int i : {-1, 2, 9})
    expect_error([&] { static_cast<void>(shape[i]); }, Fault::config, concat("dimension ", i, " of [3, 4]"));
  expect_error([] { static_cast<void>(Shape{}[0]); }, Fault::config, "dimension 0 of []");
}

TEST(Types, ElementTypes) {
  EXPECT_EQ(size_of(DType::f32), sizeof(float));
  EXPECT_EQ(size_of(DType::bf16), 2u);
  EXPECT_EQ(size_of(DType::f16), 2u);
  EXPECT_EQ(size_of(DType::i64), sizeof(int64_t));
  EXPECT_EQ(size_of(DType::i32), sizeof(int32_t));
  EXPECT_EQ(size_of(DType::u8), sizeof(uint8_t));
  EXPECT_EQ(dtype_of<int32_t>(), DType::i32);
  EXPECT_EQ(concat(DType::bf16, " on ", Device{DeviceKind::cuda, 3}), "bf16 on cuda:3");
}

TEST(Types, ErrorCarriesItsFault) {
  expect_error([] { throw Error(Fault::data, "record 7"); }, Fault::data, "record 7");
  expect_error([] { DT_CHECK(1 > 2, "1 is not above ", 2); }, Fault::config, "1 is not above 2");
  EXPECT_EQ(static_cast<int>(Fault::resource), 6);
}

}  // namespace
}  // namespace dtrain
