// Gathered rows of all types, with widths that vector accesses do and do not divide.
#include "libdtrain/ops/gather_rows.h"

#include "tests/testing.h"

namespace dtrain {
namespace {

// Rows [x_images, t, width] with distinct elements as far as T allows, and the expected result.
template <class T>
void expect_gathered(int64_t n, int64_t x_images, int64_t t, int64_t width, const std::vector<int32_t>& indices) {
  std::vector<T> x(static_cast<size_t>(x_images * t * width));
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<T>(i + 1);
  const auto k = static_cast<int64_t>(indices.size()) / n;
  std::vector<T> expected;
  for (int64_t i = 0; i < n * k; ++i) {
    const int64_t index = indices[static_cast<size_t>(i)], image = x_images == 1 ? 0 : i / k;
    for (int64_t c = 0; c < width; ++c) {
      const auto at = static_cast<size_t>((image * t + index) * width + c);
      expected.push_back(index < 0 || index >= t ? T(0) : x[at]);
    }
  }
  for (const auto& context : devices()) {
    poison(*context);
    const Tensor y = context->empty({n, k, width}, dtype_of<T>());
    gather_rows(*context, to_device(*context, {x_images, t, width}, x), to_device(*context, {n, k}, indices), y);
    EXPECT_EQ(values_of<T>(*context, y), expected) << x_images << " x " << t << " x " << width;
  }
}

TEST(GatherRows, Copies) {
  const std::vector<int32_t> indices{3, -1, 0, 3, 6, 2, 7, -5, 1, 1, 4, 5};
  for (const int64_t width : {1, 3, 4, 16, 21}) {
    expect_gathered<float>(3, 3, 7, width, indices);
    expect_gathered<float>(3, 1, 7, width, indices);
    expect_gathered<int32_t>(2, 2, 7, width, indices);
    expect_gathered<uint8_t>(2, 2, 7, width, indices);
    expect_gathered<int64_t>(1, 1, 7, width, indices);
  }
}

TEST(GatherRows, CopiesMany) {
  std::vector<int32_t> indices(3 * 4000);
  for (size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<int32_t>(i * 7919 % 5001) - 1;
  expect_gathered<float>(3, 3, 5000, 4, indices);
}

TEST(GatherRows, ScalarsAndSlices) {
  for (const auto& context : devices()) {
    // The slice is not 16-byte aligned.
    const Tensor x = to_device<float>(*context, {3, 5}, {9, 9, 9, 9, 9, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9}).slice(1, 3);
    const Tensor y = context->empty({2, 2});
    gather_rows(*context, x, to_device<int32_t>(*context, {2, 2}, {4, 0, -1, 2}), y);
    EXPECT_EQ(values_of<float>(*context, y), (std::vector<float>{4, 0, 0, 7}));
  }
}

TEST(GatherRows, RefusesWhatDoesNotFit) {
  for (const auto& context : devices()) {
    const Tensor x = context->zeros({2, 3, 4}), y = context->zeros({2, 5, 4});
    const Tensor indices = context->zeros({2, 5}, DType::i32), three = context->zeros({3, 5}, DType::i32);
    expect_error([&] { gather_rows(*context, x, three, y); }, Fault::config, "[3, t, ...]");
    expect_error([&] { gather_rows(*context, x, indices, x); }, Fault::config, "gather_rows: y");
    expect_error([&] { gather_rows(*context, x, y, y); }, Fault::config, "indices [n, k]");
  }
}

}  // namespace
}  // namespace dtrain
