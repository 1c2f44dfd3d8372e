// Zero padding of canvases is restored.
#include "libdtrain/ops/blank_outside.h"

#include <cmath>

#include "tests/testing.h"

namespace dtrain {
namespace {

TEST(BlankOutside, KeepsWhatIsInside) {
  const std::vector<double> sizes{5, 7, 3, 4, 0, 7, 9, 2.5, 1, 100};  // a partly covered column is inside
  for (const auto& context : devices())
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
      for (const int64_t channels : {3, 8}) {
        if (context->is_cpu() && dtype == DType::f16) continue;
        const Array images = rounded(random_array({5, 5, 7, channels}, 1), dtype);
        Array expected = images;
        for (int64_t i = 0; i < images.count(); ++i) {
          const int64_t n = i / (35 * channels), h = i / (7 * channels) % 5, w = i / channels % 7;
          const auto size = [&](int64_t axis) { return sizes[static_cast<size_t>(2 * n + axis)]; };
          if (static_cast<double>(h) >= size(0) || static_cast<double>(w) >= size(1)) expected[i] = 0;
        }
        const Tensor x = to_device(*context, images, dtype);
        blank_outside(*context, x, to_device(*context, Array({5, 2}, sizes)));
        EXPECT_EQ(to_host(*context, x).values, expected.values) << context->device() << " " << dtype;
      }
}

TEST(BlankOutside, SizesThatAreNoNumbersLeaveNothing) {
  for (const auto& context : devices()) {
    const Tensor x = to_device(*context, Array({3, 2, 2, 1}, 1));
    blank_outside(*context, x, to_device(*context, Array({3, 2}, {std::nan(""), 2, 2, std::nan(""), -1, 2})));
    EXPECT_EQ(largest(to_host(*context, x)), 0);
  }
}

TEST(BlankOutside, RefusesWhatDoesNotFit) {
  const auto context = make_cpu_context();
  const Tensor x = context->zeros({2, 3, 3, 1}), sizes = context->zeros({2, 2});
  expect_error([&] { blank_outside(*context, sizes, sizes); }, Fault::config, "images [2, 2]");
  expect_error([&] { blank_outside(*context, x, context->zeros({2})); }, Fault::config, "sizes [2]");
}

}  // namespace
}  // namespace dtrain
