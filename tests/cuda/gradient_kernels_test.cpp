// Kernels that complement the libraries' convolutions and GEMMs, on each GPU, emulated ones included.
#include "dtrain/ops/conv2d.h"
#include "libdtrain/ops/conv2d_cuda.h"
#include "libdtrain/ops/conv2d_kernels.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

constexpr DType kTypes[] = {DType::f32, DType::bf16, DType::f16};

// f(context, type) for each GPU and type.
template <class Body>
void for_each_gpu(Body&& body) {
  bool found = false;
  for (const auto& context : devices()) {
    if (context->is_cpu()) continue;
    found = true;
    for (const DType type : kTypes) {
      SCOPED_TRACE(concat(context->device(), ", ", type));
      poison(*context);
      body(*context, type);
    }
  }
  if (!found) GTEST_SKIP() << "SKIPPED: no GPU";
}

TEST(GradientKernels, BiasGradientIsTheSumOverRows) {
  for_each_gpu([](Context& context, DType type) {
    struct {
      int64_t rows, channels;
    } const cases[] = {{1, 1}, {3, 8}, {7, 17}, {300, 64}, {1000, 8}, {1100, 35}, {257, 520}, {2, 1000}};
    for (const auto& test : cases) {
      const Array dy = random_array({test.rows, test.channels}, 3), before = random_array({test.channels}, 4);
      const Tensor from = to_device(context, dy, type);
      const Array rounded = to_host(context, from);
      for (const bool add : {false, true}) {
        const Tensor db = to_device(context, before);
        cuda::bias_grad(context, from, db, add);
        Array expected({test.channels});
        for (int64_t c = 0; c < test.channels; ++c) {
          for (int64_t row = 0; row < test.rows; ++row) expected[c] += rounded[row * test.channels + c];
          if (add) expected[c] += before[c];
        }
        expect_close(to_host(context, db), expected, 1e-5, concat(test.rows, " rows of ", test.channels));
      }
    }
  });
}

TEST(GradientKernels, BiasIsAddedToEachRow) {
  for_each_gpu([](Context& context, DType type) {
    for (const Shape& shape : {Shape{2, 3, 3, 8}, Shape{5, 17}, Shape{1, 1}, Shape{1, 31, 29, 64}}) {
      const int64_t channels = shape[shape.rank() - 1];
      const Array bias = random_array({channels}, 6);
      const Tensor y = to_device(context, random_array(shape, 5), type);
      Array expected = to_host(context, y);
      for (int64_t i = 0; i < expected.count(); ++i) expected[i] += bias[i % channels];
      cuda::add_bias(context, to_device(context, bias), y);
      expect_close(to_host(context, y), expected, bounds_of(type).value, concat(shape));
    }
  });
}

TEST(GradientKernels, GradientsAreStoredOrAddedWithoutThePaddedChannels) {
  for_each_gpu([](Context& context, DType type) {
    struct {
      Shape from, to;
    } const cases[] = {{{4, 3, 3, 8}, {4, 3, 3, 8}},
                       {{5, 3, 3, 5}, {5, 3, 3, 5}},
                       {{6, 7, 7, 8}, {6, 7, 7, 3}},
                       {{1, 1, 1, 4}, {1, 1, 1, 3}},
                       {{64, 1, 1, 129}, {64, 1, 1, 129}}};
    for (const auto& test : cases)
      for (const bool add : {false, true}) {
        const Tensor from = to_device(context, random_array(test.from, 7), type);
        const Array values = to_host(context, from), before = random_array(test.to, 8);
        const Tensor to = to_device(context, before);
        cuda::store_gradient(context, from, to, add);
        const int64_t wide = test.from[3], narrow = test.to[3];
        Array expected(test.to);
        for (int64_t i = 0; i < expected.count(); ++i)
          expected[i] = values[i / narrow * wide + i % narrow] + (add ? before[i] : 0);
        expect_close(to_host(context, to), expected, 1e-6, concat(test.from, " to ", test.to));
      }
  });
}

}  // namespace
}  // namespace dtrain
