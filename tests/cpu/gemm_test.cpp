// The micro-kernels against sums in the order of k, to the bit: the width of vectors must not show.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "libdtrain/cpu/kernels/table.h"
#include "tests/cpu/drawn.h"
#include "tests/cpu/instruction_sets.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

using Numbers = std::vector<float>;

// One element: a[0], a[step] ... by every `columns`-th of `panel`, on top of `sum`. Compilers that do not optimise
// leave products and sums apart.
float sum_in_order(bool fused, int64_t k, const float* a, int64_t step, const float* panel, int64_t columns,
                   float sum = 0) {
  for (int64_t p = 0; p < k; ++p) {
    const volatile float product = a[p * step] * panel[p * columns];
    sum = fused ? std::fma(a[p * step], panel[p * columns], sum) : sum + product;
  }
  return sum;
}

// y as it was before, with the sums stored or added: element (row, column) of a result whose rows are `stride` apart.
template <class Sum>
Numbers with_sums(const Numbers& before, int64_t stride, int64_t columns, bool add, const Sum& sum) {
  Numbers y = before;
  for (int64_t i = 0; i < static_cast<int64_t>(y.size()); ++i)
    if (i % stride < columns) {
      float& element = y[static_cast<size_t>(i)];
      element = sum(i / stride, i % stride) + (add ? element : 0.0f);
    }
  return y;
}

class Gemm : public testing::TestWithParam<CpuIsa> {
 protected:
  const cpu::GemmKernels kernels = cpu::kernels_of(GetParam()).gemm;
  const int64_t columns = kernels.columns, most_columns = kernels.panels * columns;

  // Offsets of rows of `stride` elements.
  static std::vector<int64_t> places_of(int64_t rows, int64_t stride) {
    std::vector<int64_t> places;
    for (int64_t i = 0; i < rows; ++i) places.push_back(i * stride);
    return places;
  }
  // Numbers of valid columns that are tried.
  std::vector<int64_t> valid_columns() const {
    std::vector<int64_t> valid{columns, columns - 3, columns / 2, 1};
    if (kernels.panels > 1) valid.insert(valid.end(), {most_columns, most_columns - 3, columns + 1});
    return valid;
  }
};

class GemmBf16 : public Gemm {};

TEST_P(Gemm, StridedIsSumsInOrder) {
  for (const int64_t k : {1, 2, 17, 256})
    for (int64_t rows = 1; rows <= 2 * kernels.rows + 2; ++rows)
      for (int64_t panels = 1; panels <= kernels.panels; ++panels) {
        const int64_t a_stride = k + 3, y_stride = panels * columns + 2, panel_step = k * columns + 16;
        const Numbers a = drawn(rows * a_stride, 1), panel = drawn(panels * panel_step, 2);
        const Numbers before = drawn(rows * y_stride, 3);
        for (const bool add : {false, true}) {
          Numbers y = before;
          kernels.strided({.rows = rows,
                           .k = k,
                           .a = a.data(),
                           .a_stride = a_stride,
                           .b = panel.data(),
                           .b_stride = columns,
                           .y = y.data(),
                           .y_stride = y_stride,
                           .add = add,
                           .panels = panels,
                           .panel_step = panel_step,
                           .prefetch = {a.data(), 4 * k}});
          const auto expected = [&](bool fused) {
            return with_sums(before, y_stride, panels * columns, add, [&](int64_t row, int64_t column) {
              const float* const own = panel.data() + column / columns * panel_step + column % columns;
              return sum_in_order(fused, k, a.data() + row * a_stride, 1, own, columns);
            });
          };
          EXPECT_TRUE(y == expected(true) || y == expected(false)) << k << " " << rows << " " << panels << " " << add;
        }
      }
}

TEST_P(Gemm, TransposedAIsSumsInOrder) {
  for (const int64_t k : {1, 5, 256})
    for (int64_t rows = 1; rows <= kernels.rows + 1; ++rows)
      for (int64_t panels = 1; panels <= kernels.panels; ++panels) {
        const int64_t a_stride = rows + 5, b_stride = panels * columns + 3, y_stride = panels * columns + 2;
        const Numbers a = drawn(k * a_stride, 1), b = drawn(k * b_stride, 2);
        const Numbers before = drawn(rows * y_stride, 3);
        for (const bool add : {false, true}) {
          Numbers y = before;
          kernels.transposed_a({.rows = rows,
                                .k = k,
                                .a = a.data(),
                                .a_stride = a_stride,
                                .b = b.data(),
                                .b_stride = b_stride,
                                .y = y.data(),
                                .y_stride = y_stride,
                                .add = add,
                                .panels = panels,
                                .panel_step = columns,
                                .prefetch = {a.data(), 4 * k}});
          const auto expected = [&](bool fused) {
            return with_sums(before, y_stride, panels * columns, add, [&](int64_t row, int64_t column) {
              return sum_in_order(fused, k, a.data() + row, a_stride, b.data() + column, b_stride);
            });
          };
          EXPECT_TRUE(y == expected(true) || y == expected(false)) << k << " " << rows << " " << panels << " " << add;
        }
      }
}

TEST_P(Gemm, IndirectRowsAreSumsOverTapsWithTheEpilogue) {
  const int64_t k = 9, taps = 4, y_stride = most_columns + 3;
  const Numbers from = drawn(500, 1), panels = drawn(taps * k * most_columns, 2), bias = drawn(most_columns, 4);
  for (int64_t rows = 1; rows <= kernels.rows; ++rows)
    for (const int64_t valid : valid_columns())
      for (const bool ends : {false, true}) {
        std::vector<const float*> at;
        for (int64_t i = 0; i < taps * rows; ++i) at.push_back(from.data() + i * 37 % 490);  // and one that is skipped
        const Numbers before = drawn(rows * y_stride, 3);
        const std::vector<int64_t> places = places_of(rows, y_stride);
        Numbers y = before;
        cpu::Epilogue<float> end;
        if (ends) end = {.bias = bias.data(), .residual = y.data(), .relu = true};
        kernels.indirect({.rows = rows,
                          .taps = taps,
                          .k = k,
                          .at = at.data(),
                          .row_step = rows,
                          .skip = 1,
                          .panel = panels.data(),
                          .panel_step = taps * k * columns,
                          .y = y.data(),
                          .places = places.data(),
                          .valid = valid,
                          .end = end,
                          .prefetch = {from.data(), 1999}});
        const auto expected = [&](bool fused) {
          return with_sums(before, y_stride, valid, false, [&](int64_t row, int64_t column) {
            const float* const panel = panels.data() + column / columns * taps * k * columns + column % columns;
            float sum = 0;
            for (int64_t tap = 0; tap < taps; ++tap)
              sum = sum_in_order(fused, k, at[static_cast<size_t>(tap * rows + row)] + 1, 1, panel + tap * k * columns,
                                 columns, sum);
            if (!ends) return sum;
            sum += bias[static_cast<size_t>(column)];
            sum += before[static_cast<size_t>(row * y_stride + column)];
            return sum < 0 ? 0 : sum;
          });
        };
        EXPECT_TRUE(y == expected(true) || y == expected(false)) << rows << " " << valid << " " << ends;
      }
}

// Sums of pairs have no stated order: they are held against double precision, within a rounding per product and one to
// bf16.
TEST_P(GemmBf16, IndirectRowsAreSumsOverTapsWithTheEpilogue) {
  const int64_t k = 70, taps = 3, y_stride = most_columns + 3;
  const auto from = elements_of<Bf16>(drawn(900, 1)), panels = elements_of<Bf16>(drawn(taps * k * most_columns, 2));
  const Numbers bias = drawn(most_columns, 4);
  for (int64_t rows = 1; rows <= kernels.rows; ++rows)
    for (const int64_t valid : valid_columns())
      for (const bool ends : {false, true}) {
        std::vector<const Bf16*> at;
        for (int64_t i = 0; i < taps * rows; ++i) at.push_back(from.data() + i * 37 % 830);
        const auto before = elements_of<Bf16>(drawn(rows * y_stride, 3));
        const std::vector<int64_t> places = places_of(rows, y_stride);
        auto y = before;
        cpu::Epilogue<Bf16> end;
        if (ends) end = {.bias = bias.data(), .residual = y.data(), .relu = true};
        kernels.indirect_bf16({.rows = rows,
                               .taps = taps,
                               .k = k,
                               .at = at.data(),
                               .row_step = rows,
                               .panel = panels.data(),
                               .panel_step = taps * k * columns,
                               .y = y.data(),
                               .places = places.data(),
                               .valid = valid,
                               .end = end,
                               .prefetch = {from.data(), 1799}});
        for (int64_t i = 0; i < rows * y_stride; ++i) {
          const auto place = static_cast<size_t>(i);
          const int64_t row = i / y_stride, column = i % y_stride;
          if (column >= valid) {
            EXPECT_EQ(y[place].bits, before[place].bits) << rows << " " << valid;
            continue;
          }
          const Bf16* const panel = panels.data() + column / columns * taps * k * columns + column % columns * 2;
          double sum = 0, magnitude = 0;
          for (int64_t tap = 0; tap < taps; ++tap)
            for (int64_t p = 0; p < k; ++p) {
              const double a = at[static_cast<size_t>(tap * rows + row)][p];
              const double b = panel[(tap * k + p) / 2 * columns * 2 + p % 2];
              sum += a * b, magnitude += std::abs(a * b);
            }
          if (ends) sum = std::max(0.0, sum + bias[static_cast<size_t>(column)] + before[place]);
          const double bound = std::abs(sum) / 256 + magnitude * taps * k / (1 << 24) + 1e-6;
          EXPECT_NEAR(y[place], sum, bound) << rows << " " << valid << " " << ends << " " << row << " " << column;
        }
      }
}

// The scalar set computes what the instructions of the others do, with subnormal products, too.
TEST(GemmBf16Sets, AgreeBitForBit) {
  const int64_t rows = 13, k = 20, columns = 32;
  const auto pairs = [](int64_t count, uint64_t stream, float scale) {
    std::vector<cpu::Bf16Pair> result(static_cast<size_t>(count));
    Numbers values = drawn(2 * count, stream);
    for (float& value : values) value *= scale;
    const auto elements = elements_of<Bf16>(values);
    std::memcpy(result.data(), elements.data(), elements.size() * sizeof elements[0]);
    return result;
  };
  for (const float scale : {1.0f, 0x1p-62f}) {
    const auto a = pairs(k * rows, 1, scale), b = pairs(k * columns, 2, scale);
    Numbers first;
    for (const CpuIsa isa : instruction_sets_with(&cpu::Capabilities::bf16)) {
      Numbers y(static_cast<size_t>(rows * columns));
      cpu::kernels_of(isa).gemm.transposed_a_bf16({.rows = rows,
                                                   .k = k,
                                                   .a = a.data(),
                                                   .a_stride = rows,
                                                   .b = b.data(),
                                                   .b_stride = columns,
                                                   .y = y.data(),
                                                   .y_stride = columns});
      if (first.empty()) first = y;
      EXPECT_EQ(y, first) << name_of(isa) << " " << scale;
    }
  }
}

std::string set_name(const testing::TestParamInfo<CpuIsa>& set) { return name_of(set.param); }

INSTANTIATE_TEST_SUITE_P(Sets, Gemm, testing::ValuesIn(instruction_sets()), set_name);
INSTANTIATE_TEST_SUITE_P(Sets, GemmBf16, testing::ValuesIn(instruction_sets_with(&cpu::Capabilities::bf16)), set_name);

}  // namespace
}  // namespace dtrain
