// Scratch memory of a convolution, with a library that needs none.
#include "dtrain/ops/conv2d.h"
#include "libdtrain/ops/conv2d_kernels.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

TEST(ConvScratch, AWeightGradientTakesThatOfTheWayItGoes) {
  constexpr size_t kCount = size_t{32} * 3 * 3 * 32;
  struct {
    DType dtype;
    bool add;
    size_t scratch;
  } const cases[] = {{DType::f32, false, 0},          {DType::f32, true, kCount * 4},
                     {DType::bf16, false, 0},                                           // in f32
                     {DType::bf16, true, kCount * 4}, {DType::f16, false, kCount * 2},  // in f16, the only option
                     {DType::f16, true, kCount * 2}};
  for (const auto& test : cases) {
    const auto context = make_cuda_context();
    const Tensor x = context->zeros({1, 4, 4, 32}, test.dtype), dy = context->zeros({1, 4, 4, 32}, test.dtype);
    const Tensor dw = context->zeros({32, 3, 3, 32});
    const size_t before = context->memory_stats().in_use;
    cuda::conv2d_wgrad(*context, x, dy, {.padding = 1}, dw, test.add);
    EXPECT_EQ(context->memory_stats().peak_in_use - before, test.scratch) << test.dtype << " " << test.add;
  }
}

// Once the library's in-place accumulation is found to be correct.
TEST(ConvScratch, ADataGradientIsAddedInPlaceWhereTheLibraryCan) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    const auto context = make_cuda_context();
    const auto filled = [&](Shape shape) { return to_device(*context, random_array(shape, 1), dtype); };
    const Tensor dx = filled({1, 4, 4, 32}), w = filled({32, 3, 3, 32}), dy = filled({1, 4, 4, 32});
    const auto add = [&] { cuda::conv2d_dgrad(*context, dy, w, {.padding = 1}, dx, true); };
    add();
    const Tensor more = context->empty({static_cast<int64_t>(context->memory_stats().peak_in_use)}, DType::u8);
    const size_t before = context->memory_stats().peak_in_use;
    add();
    EXPECT_EQ(context->memory_stats().peak_in_use - before, dtype == DType::bf16 ? 0 : dx.bytes()) << dtype;
  }
}

}  // namespace
}  // namespace dtrain
