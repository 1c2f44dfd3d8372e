// Fused convolutions with wrong results are rejected.
#include "dtrain/ops/pointwise.h"
#include "libdtrain/ops/batch_norm_schedule.h"
#include "libdtrain/ops/conv2d_kernels.h"
#include "libdtrain/ops/conv_bn_fusion.h"
#include "libdtrain/ops/pointwise_kernels.h"
#include "tests/emulation/libraries.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

constexpr BatchNormSchedule kMeasureAll{.measure_fusions = true, .least_measured = 0};

TEST(ConvFaults, AWrongWayForwardIsNotTakenAndIsToldOf) {
  const ConvBnActPair pair{{2, 9, 9, 8}, DType::f16, {16, 1, 1, 8}, {8, 3, 3, 16}, {}, {.padding = 1}};
  for (const bool wrong : {true, false}) {
    cuda::spoil_fused_convolutions(wrong);
    const auto context = make_cuda_context();
    set_batch_norm_schedule(*context, kMeasureAll);
    const bool takes = cuda::takes_on_load(*context, pair);
    ASSERT_EQ(context->notices().size(), wrong ? 1u : 0u);
    if (!wrong) continue;  // then speed decides
    EXPECT_FALSE(takes);
    EXPECT_NE(context->notices()[0].find("on_load:f16:x2x9x9x8:w16x1x1x8"), std::string::npos);
  }
}

TEST(ConvFaults, AWrongWayBackIsNotTakenAndIsToldOf) {
  for (const bool wrong : {true, false}) {
    cuda::spoil_fused_convolutions(wrong);
    const auto context = make_cuda_context();
    set_batch_norm_schedule(*context, kMeasureAll);
    const Tensor dy = context->zeros({2, 9, 9, 16}, DType::f16), w = context->zeros({16, 3, 3, 8}, DType::f16);
    const Tensor x = context->zeros({2, 9, 9, 8}, DType::f16), c = context->zeros({8});
    BatchNormSaved before{x, {}, {}, c, c, c, c, Activation::relu};
    cuda::conv2d_dgrad_before(*context, dy, w, {.padding = 1}, before, x);
    ASSERT_EQ(context->notices().size(), wrong ? 1u : 0u);
    if (!wrong) continue;
    EXPECT_FALSE(before.dbeta);
    EXPECT_NE(context->notices()[0].find("in_dgrad:f16:x2x9x9x8:w16x3x3x8"), std::string::npos);
  }
}

TEST(ConvFaults, AWrongSumInPlaceIsNotTakenAndIsReported) {
  for (const bool wrong : {true, false}) {
    cuda::spoil_fused_convolutions(wrong);
    const auto context = make_cuda_context();
    const auto filled = [&](Shape shape, uint64_t seed) {
      return to_device(*context, random_array(shape, seed), DType::bf16);
    };
    const Tensor dy = filled({2, 9, 9, 16}, 1), w = filled({16, 3, 3, 8}, 2), dx = filled({2, 9, 9, 8}, 3);
    const Array expected = [&] {
      const Tensor sum = filled(dx.shape(), 3), part = context->empty(dx.shape(), DType::bf16);
      cuda::conv2d_dgrad(*context, dy, w, {.padding = 1}, part, false);
      cuda::accumulate(*context, part, sum);
      return to_host(*context, sum);
    }();
    cuda::conv2d_dgrad(*context, dy, w, {.padding = 1}, dx, true);
    expect_close(to_host(*context, dx), expected, bounds_of(DType::bf16).value, "sum");
    ASSERT_EQ(context->notices().size(), wrong ? 1u : 0u);
    if (!wrong) continue;
    EXPECT_NE(context->notices()[0].find("dgrad_add:bf16:n2:h9x9"), std::string::npos);
  }
}

}  // namespace
}  // namespace dtrain
