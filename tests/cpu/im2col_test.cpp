// The addresses of an im2col view, against the taps of each output pixel.
#include "libdtrain/cpu/conv/im2col.h"

#include <vector>

#include "libdtrain/ops/conv2d_kernels.h"
#include "tests/cpu/for_each_tap.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

class Im2col : public testing::TestWithParam<cpu::ConvShape> {};

// From any pixel of the first rows on, to others of the same row, of a later row, of the next image.
TEST_P(Im2col, HasTheAddressesOfTheTaps) {
  const cpu::ConvShape& o = GetParam();
  const int64_t taps = o.r * o.s, pixels = o.n * o.p * o.q;
  const std::vector<float> x(static_cast<size_t>(o.n * o.h * o.w * o.c)), zeros(static_cast<size_t>(o.c));
  std::vector<const float*> expected(static_cast<size_t>(taps * pixels), zeros.data());
  for_each_tap(o, [&](int64_t out, int64_t in, int64_t tap) {
    expected[static_cast<size_t>(tap * pixels + out)] = x.data() + in * o.c;
  });
  const cpu::MatrixA<float> matrix = cpu::Im2colView<float>{o, x.data()}.matrix(zeros.data());
  EXPECT_EQ(matrix.contiguous != nullptr, cpu::reads_pixels_in_order(o));
  for (int64_t first = 0; first < std::min(2 * o.q + 1, pixels); ++first)
    for (int64_t count = 1; first + count <= pixels; count += 1 + count / 4) {
      std::vector<const float*> found(static_cast<size_t>(taps * (count + 1)));  // one more, which stays null
      matrix.fill_indirection(first, count, count + 1, found.data());
      for (int64_t tap = 0; tap < taps; ++tap)
        for (int64_t i = 0; i <= count; ++i)
          ASSERT_EQ(found[static_cast<size_t>(tap * (count + 1) + i)],
                    i < count ? expected[static_cast<size_t>(tap * pixels + first + i)] : nullptr)
              << "tap " << tap << " of pixel " << first + i;
    }
}

// n, h, w, c, k, r, s, p, q, stride_h, stride_w, dilation_h, dilation_w, pad_top, pad_bottom, pad_left, pad_right,
// groups
INSTANTIATE_TEST_SUITE_P(Shapes, Im2col,
                         testing::Values(cpu::ConvShape{2, 5, 4, 3, 1, 1, 1, 5, 4, 1, 1, 1, 1, 0, 0, 0, 0, 1},
                                         cpu::ConvShape{3, 5, 7, 2, 1, 3, 3, 5, 7, 1, 1, 1, 1, 1, 1, 1, 1, 1},
                                         cpu::ConvShape{2, 9, 8, 1, 1, 7, 7, 5, 4, 2, 2, 1, 1, 3, 3, 3, 2, 1},
                                         cpu::ConvShape{2, 9, 11, 4, 1, 3, 2, 3, 4, 2, 3, 2, 4, 1, 0, 3, 1, 1},
                                         // All columns of some taps are padding.
                                         cpu::ConvShape{2, 2, 2, 1, 1, 5, 5, 2, 2, 1, 1, 1, 1, 2, 2, 2, 2, 1},
                                         cpu::ConvShape{1, 2, 3, 1, 1, 1, 1, 8, 9, 1, 1, 1, 1, 3, 3, 3, 3, 1}));

}  // namespace
}  // namespace dtrain
