// Products of bytes against whole numbers of 64 bits, to the bit and so alike in all instruction sets.
#include "libdtrain/cpu/kernels/gemm_u8s8.h"

#include <cmath>
#include <limits>

#include "libdtrain/cpu/kernels/table.h"
#include "tests/cpu/drawn.h"
#include "tests/cpu/instruction_sets.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

using Numbers = std::vector<float>;

class ByteProduct : public testing::TestWithParam<CpuIsa> {
 protected:
  const cpu::GemmKernelsU8S8& kernels = cpu::kernels_of(GetParam()).gemm_u8s8;
  const int64_t columns = kernels.columns;
};

template <class T>
std::vector<T> drawn_bytes(int64_t count, uint64_t stream, float low, float high) {
  std::vector<T> bytes;
  for (const float value : drawn(count, stream))
    bytes.push_back(static_cast<T>(std::lround(low + (value + 1) / 2 * (high - low))));
  return bytes;
}

// Filters of which pairs come to what a kernel allows.
std::vector<int8_t> drawn_filters(int64_t count, uint64_t stream, int max_pair_sum) {
  std::vector<int8_t> filters = drawn_bytes<int8_t>(count, stream, -127, 127);
  for (size_t i = 0; i < filters.size(); i += 2) {
    const int pair = filters[i] + filters[i + 1], beyond = std::abs(pair) - max_pair_sum;
    if (beyond > 0) filters[i] = static_cast<int8_t>(filters[i] + (pair > 0 ? -beyond : beyond));
  }
  return filters;
}

uint8_t rounded(float value) { return static_cast<uint8_t>(std::clamp(std::nearbyint(value), 0.0f, 255.0f)); }

// Rows that lie anywhere, by one panel of `columns` columns or several, one after the other.
struct Operands {
  int64_t rows, taps, k, columns;
  std::vector<uint8_t> from;
  std::vector<int8_t> panel;
  std::vector<const uint8_t*> at{};

  Operands(const cpu::GemmKernelsU8S8& kernels, int64_t r, int64_t t, int64_t length, std::vector<uint8_t> bytes,
           std::vector<int8_t> filters)
      : rows(r), taps(t), k(length), columns(kernels.columns), from(std::move(bytes)), panel(std::move(filters)) {
    for (int64_t i = 0; i < taps * rows; ++i) at.push_back(from.data() + i * 37 % (std::ssize(from) - k));
  }
  int64_t panel_bytes() const { return taps * k * columns; }
  int64_t sum(int64_t row, int64_t column) const {
    int64_t sum = 0;
    for (int64_t i = 0; i < taps * k; ++i) {
      const uint8_t a = at[static_cast<size_t>(i / k * rows + row)][i % k];
      const int64_t before = column / columns * panel_bytes() + i / 4 * columns * 4;
      sum += int64_t{a} * panel[static_cast<size_t>(before + column % columns * 4 + i % 4)];
    }
    return sum;
  }
  cpu::IndirectGemmU8S8 gathered(int64_t valid) const {
    cpu::IndirectGemmU8S8 g{};
    g.rows = rows, g.taps = taps, g.k = k, g.at = at.data(), g.row_step = rows, g.panel = panel.data();
    g.panel_step = panel_bytes(), g.valid = valid;
    return g;
  }
};

TEST_P(ByteProduct, SumsAreExactAndEndAsAsked) {
  const int64_t k = 12, taps = 3, most = kernels.panels * columns, stride = most + 5;
  const Numbers shift = drawn(most, 5), residual = drawn(13 * stride, 6);
  Numbers scale = drawn(most, 4);
  for (float& factor : scale) factor *= 2e-3f;  // most results are within bytes
  const auto residual_bytes = drawn_bytes<uint8_t>(13 * stride, 7, 0, 255);
  const float none = -std::numeric_limits<float>::infinity();
  for (int64_t rows = 1; rows <= kernels.rows; ++rows)
    for (const int64_t valid : {most, most - 3, most - columns / 2 - 1, columns, columns - 3, columns / 2, int64_t{1}})
      for (const int residuals : {0, 1, 2})
        for (const float floor : {none, 0.0f, 3.0f}) {
          const Operands in(kernels, rows, taps, k, drawn_bytes<uint8_t>(600, 1, 0, 255),
                            drawn_filters(taps * k * most, 2, kernels.max_pair_sum));
          cpu::IndirectGemmU8S8 g = in.gathered(valid);
          g.end.scale = scale.data(), g.end.shift = shift.data(), g.end.residual_scale = 0.3f, g.end.floor = floor;
          if (residuals == 1) g.end.residual_bytes = residual_bytes.data();
          if (residuals == 2) g.end.residual = residual.data();
          Numbers y(static_cast<size_t>(rows * stride), -7);
          std::vector<uint8_t> bytes(y.size(), 99);
          g.y = {nullptr, y.data()}, g.y_stride = stride;
          kernels.indirect(g);
          g.y = {bytes.data(), nullptr};
          kernels.indirect(g);
          for (int64_t i = 0; i < std::ssize(y); ++i) {
            const auto place = static_cast<size_t>(i), column = static_cast<size_t>(i % stride);
            const bool stored = i % stride < valid;
            float expected = -7;
            if (stored) {
              expected = std::fma(static_cast<float>(in.sum(i / stride, i % stride)), scale[column], shift[column]);
              if (residuals == 1) expected = std::fma(static_cast<float>(residual_bytes[place]), 0.3f, expected);
              if (residuals == 2) expected = std::fma(residual[place], 0.3f, expected);
              expected = std::max(expected, floor);
            }
            const auto where = [&] { return concat(rows, " ", valid, " ", residuals, " ", floor, " ", i); };
            ASSERT_EQ(y[place], expected) << where();
            ASSERT_EQ(bytes[place], stored ? rounded(expected) : 99) << where();
          }
        }
}

// Whatever the sums are scaled by, bytes are at their ends where a result is beyond them, and 0 where it is a NaN.
TEST_P(ByteProduct, WhatIsBeyondBytesIsAtTheirEnds) {
  const int64_t most = kernels.panels * columns;
  const Operands in(kernels, kernels.rows, 1, 4, std::vector<uint8_t>(600, 1),
                    std::vector<int8_t>(static_cast<size_t>(4 * most), 1));
  for (const int64_t valid : {most, most - 1}) {
    cpu::IndirectGemmU8S8 g = in.gathered(valid);
    Numbers scale, shift(static_cast<size_t>(most), 0);
    const float scales[] = {1e30f, -1e30f, 7e8f, -7e8f, 100, std::numeric_limits<float>::quiet_NaN()};
    const uint8_t ends[] = {255, 0, 255, 0, 255, 0};
    for (int64_t i = 0; i < most; ++i) scale.push_back(scales[i % std::ssize(scales)]);
    g.end.scale = scale.data(), g.end.shift = shift.data();
    std::vector<uint8_t> y(static_cast<size_t>(kernels.rows * most), 99);
    g.y = {y.data(), nullptr}, g.y_stride = most;
    kernels.indirect(g);
    for (int64_t i = 0; i < std::ssize(y); ++i)
      ASSERT_EQ(y[static_cast<size_t>(i)], i % most < valid ? ends[i % most % std::ssize(ends)] : 99) << i;
  }
}

// Where sums of pairs in 16 bits would saturate, and the longest that a filter may be.
TEST_P(ByteProduct, TheLargestSumsDoNotSaturate) {
  const int64_t k = 65536;
  const Numbers ones(static_cast<size_t>(columns), 1), none(ones.size(), 0);
  const int most = kernels.max_pair_sum;
  EXPECT_GE(most, 127);
  for (const int sign : {1, -1})
    for (const int larger : {127, most / 2}) {
      std::vector<int8_t> filters;
      for (int64_t i = 0; i < k * columns; ++i)
        filters.push_back(static_cast<int8_t>(sign * (i % 2 == 0 ? larger : most - larger)));
      const Operands in(kernels, 1, 1, k, std::vector<uint8_t>(static_cast<size_t>(k + 1), 255), filters);
      cpu::IndirectGemmU8S8 g = in.gathered(columns);
      Numbers y(static_cast<size_t>(columns));
      g.end.scale = ones.data(), g.end.shift = none.data();
      g.end.floor = -std::numeric_limits<float>::infinity();
      g.y = {nullptr, y.data()}, g.y_stride = columns;
      kernels.indirect(g);
      EXPECT_EQ(y, Numbers(y.size(), static_cast<float>(k / 2 * 255 * most * sign))) << larger;
    }
}

TEST_P(ByteProduct, FloatsBecomeTheNearestBytes) {
  Numbers x = drawn(kernels.columns * 2 + 3, 1);
  x[0] = 1e30f, x[1] = -1e30f, x[2] = 0.5f, x[3] = 1.5f / 100;
  std::vector<uint8_t> bytes(x.size() + 1, 77);
  kernels.quantize(std::ssize(x), x.data(), 100, 128, bytes.data());
  for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(bytes[i], rounded(std::fma(x[i], 100.0f, 128.0f))) << i;
  EXPECT_EQ(bytes[0], 255);
  EXPECT_EQ(bytes[1], 0);
  EXPECT_EQ(bytes.back(), 77);
}

INSTANTIATE_TEST_SUITE_P(Sets, ByteProduct, testing::ValuesIn(instruction_sets()),
                         [](const auto& set) { return std::string(name_of(set.param)); });

}  // namespace
}  // namespace dtrain
