// The micro-kernels against sums in the order of k, to the bit: the width of vectors must not show.
#include "libdtrain/cpu/gemm_tile.h"

#include <cmath>
#include <vector>

#include "libdtrain/core/rng.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

constexpr int64_t kColumns = cpu::kTileColumns;
using Numbers = std::vector<float>;

Numbers drawn_numbers(int64_t count, uint64_t stream) {
  RandomStream draws(7, stream);
  Numbers values(static_cast<size_t>(count));
  for (float& value : values) value = draws.uniform(-1, 1);
  return values;
}

// One element: a[0], a[step] ... by every sixteenth of `panel`. Compilers that do not optimise leave products and sums
// apart.
float sum_in_order(bool fused, int64_t k, const float* a, int64_t step, const float* panel) {
  float sum = 0;
  for (int64_t p = 0; p < k; ++p) {
    const volatile float product = a[p * step] * panel[p * kColumns];
    sum = fused ? std::fma(a[p * step], panel[p * kColumns], sum) : sum + product;
  }
  return sum;
}

// c as it was before, with the sums stored or added: element (row, column) of a result whose rows are `stride` apart.
template <class Sum>
Numbers with_sums(const Numbers& before, int64_t stride, bool add, const Sum& sum) {
  Numbers c = before;
  for (int64_t i = 0; i < static_cast<int64_t>(c.size()); ++i)
    if (i % stride < kColumns) {
      float& element = c[static_cast<size_t>(i)];
      element = sum(i / stride, i % stride) + (add ? element : 0.0f);
    }
  return c;
}

TEST(GemmTile, RowsAreSumsInOrder) {
  for (const int64_t k : {1, 2, 17, 256})
    for (int64_t rows = 1; rows <= 26; ++rows) {
      const int64_t a_stride = k + 3, c_stride = kColumns + 2;
      const Numbers a = drawn_numbers(rows * a_stride, 1), panel = drawn_numbers(k * kColumns, 2);
      const Numbers before = drawn_numbers(rows * c_stride, 3);
      for (const bool add : {false, true}) {
        Numbers c = before;
        cpu::gemm_rows(rows, k, a.data(), a_stride, panel.data(), c.data(), c_stride, add);
        const auto expected = [&](bool fused) {
          return with_sums(before, c_stride, add, [&](int64_t row, int64_t column) {
            return sum_in_order(fused, k, a.data() + row * a_stride, 1, panel.data() + column);
          });
        };
        EXPECT_TRUE(c == expected(true) || c == expected(false)) << k << " " << rows << " " << add;
      }
    }
}

TEST(GemmTile, PanelsAreSumsInOrder) {
  for (const int64_t k : {1, 5, 256}) {
    const Numbers a = drawn_numbers(k * kColumns, 1), b = drawn_numbers(k * kColumns, 2);
    const Numbers before = drawn_numbers(kColumns * kColumns, 3);
    for (const bool add : {false, true}) {
      Numbers c = before;
      cpu::gemm_panels(k, a.data(), b.data(), c.data(), kColumns, add);
      const auto expected = [&](bool fused) {
        return with_sums(before, kColumns, add, [&](int64_t row, int64_t column) {
          return sum_in_order(fused, k, a.data() + row, kColumns, b.data() + column);
        });
      };
      EXPECT_TRUE(c == expected(true) || c == expected(false)) << k << " " << add;
    }
  }
}

}  // namespace
}  // namespace dtrain
