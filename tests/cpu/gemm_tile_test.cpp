// The micro-kernels against sums in the order of k, to the bit: the width of vectors must not show.
#include "libdtrain/cpu/gemm_tile.h"

#include <cmath>
#include <vector>

#include "libdtrain/core/rng.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

constexpr int64_t kColumns = cpu::kTileColumns;

std::vector<float> values_of(int64_t count, uint64_t stream) {
  RandomStream draws(7, stream);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = draws.uniform(-1, 1);
  return values;
}

// One element: a[0], a[step] ... by every sixteenth of `panel`.
float sum_in_order(int64_t k, const float* a, int64_t step, const float* panel) {
  float sum = 0;
  for (int64_t p = 0; p < k; ++p) sum = std::fma(a[p * step], panel[p * kColumns], sum);
  return sum;
}

TEST(GemmTile, RowsAreSumsInOrder) {
  for (const int64_t k : {1, 2, 17, 256})
    for (int64_t rows = 1; rows <= 26; ++rows) {
      const int64_t a_stride = k + 3, c_stride = kColumns + 2;
      const auto a = values_of(rows * a_stride, 1), panel = values_of(k * kColumns, 2);
      const auto before = values_of(rows * c_stride, 3);
      for (const bool add : {false, true}) {
        std::vector<float> c = before;
        cpu::gemm_rows(rows, k, a.data(), a_stride, panel.data(), c.data(), c_stride, add);
        for (int64_t i = 0; i < rows * c_stride; ++i) {
          const int64_t row = i / c_stride, column = i % c_stride;
          const float old = before[static_cast<size_t>(i)];
          float expected = old;
          if (column < kColumns)
            expected = sum_in_order(k, a.data() + row * a_stride, 1, panel.data() + column) + (add ? old : 0.0f);
          ASSERT_EQ(c[static_cast<size_t>(i)], expected) << k << " " << rows << " " << i;
        }
      }
    }
}

TEST(GemmTile, PanelsAreSumsInOrder) {
  for (const int64_t k : {1, 5, 256}) {
    const auto a = values_of(k * kColumns, 1), b = values_of(k * kColumns, 2),
               before = values_of(kColumns * kColumns, 3);
    for (const bool add : {false, true}) {
      std::vector<float> c = before;
      cpu::gemm_panels(k, a.data(), b.data(), c.data(), kColumns, add);
      for (int64_t i = 0; i < kColumns * kColumns; ++i) {
        const float sum = sum_in_order(k, a.data() + i / kColumns, kColumns, b.data() + i % kColumns);
        ASSERT_EQ(c[static_cast<size_t>(i)], sum + (add ? before[static_cast<size_t>(i)] : 0.0f)) << k << " " << i;
      }
    }
  }
}

}  // namespace
}  // namespace dtrain
