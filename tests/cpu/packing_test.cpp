// Packed micro-panels of B hold its elements, and zeros where it has none.
#include "libdtrain/cpu/gemm/packing.h"

#include <cmath>
#include <vector>

#include "libdtrain/cpu/kernels/table.h"
#include "tests/cpu/drawn.h"
#include "tests/cpu/instruction_sets.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

// Whole blocks of a transposition, and what is left of rows and words.
TEST(PackedPanels, HoldTheColumnsOfB) {
  for (const CpuIsa isa : instruction_sets()) {
    const auto context = context_of(isa);
    const int64_t width = context->kernels().gemm.columns;
    for (const auto& shape : {std::pair<int64_t, int64_t>{1, 1}, {width, 8}, {width + 3, 19}, {2 * width, 1030}}) {
      const int64_t n = shape.first, depth = shape.second;
      SCOPED_TRACE(concat(name_of(isa), " ", depth, " x ", n));
      const std::vector<float> bt = drawn(n * depth, 1);  // [n, depth]
      std::vector<float> b(bt.size());                    // [depth, n]
      for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < depth; ++j) b[static_cast<size_t>(j * n + i)] = bt[static_cast<size_t>(i * depth + j)];
      std::vector<float> transposed(static_cast<size_t>(cpu::packed_elements(*context, n, depth)), NAN),
          rows = transposed;
      cpu::pack_transposed(*context, n, depth, bt.data(), transposed.data());
      cpu::pack_rows<float>(
          *context, n, depth, [&](int64_t i) { return b.data() + i * n; }, rows.data());
      for (int64_t i = 0; i < std::ssize(transposed); ++i) {
        const int64_t column = i / (width * depth) * width + i % width, row = i / width % depth;
        ASSERT_EQ(transposed[static_cast<size_t>(i)], column < n ? bt[static_cast<size_t>(column * depth + row)] : 0)
            << i;
      }
      EXPECT_EQ(transposed, rows);
    }
  }
}

TEST(PackedPanels, HoldPairsOfBf16) {
  for (const CpuIsa isa : instruction_sets()) {
    const auto context = context_of(isa);
    if (!context->kernels().capabilities.bf16) continue;
    const int64_t width = context->kernels().gemm.columns, n = width + 5, depth = 12;
    const std::vector<Bf16> bt = elements_of<Bf16>(drawn(n * depth, 1));
    std::vector<Bf16> b(bt.size());
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < depth; ++j) b[static_cast<size_t>(j * n + i)] = bt[static_cast<size_t>(i * depth + j)];
    std::vector<Bf16> transposed(static_cast<size_t>(cpu::packed_elements(*context, n, depth)), to_bf16(NAN)),
        rows = transposed;
    cpu::pack_transposed(*context, n, depth, bt.data(), transposed.data());
    cpu::pack_rows<Bf16>(
        *context, n, depth, [&](int64_t i) { return b.data() + i * n; }, rows.data());
    EXPECT_EQ(values_of(transposed), values_of(rows));
    for (int64_t i = 0; i < std::ssize(transposed); ++i) {  // [panel][depth / 2][width][2]
      const int64_t column = i / (width * depth) * width + i / 2 % width,
                    row = i / (2 * width) % (depth / 2) * 2 + i % 2;
      const float expected = column < n ? static_cast<float>(bt[static_cast<size_t>(column * depth + row)]) : 0;
      ASSERT_EQ(static_cast<float>(transposed[static_cast<size_t>(i)]), expected) << i;
    }
  }
}

}  // namespace
}  // namespace dtrain
