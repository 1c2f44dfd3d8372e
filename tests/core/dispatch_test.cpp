// DT_DISPATCH is an expression, and a GPU without its arm is an Error that says how to build one.
#include "libdtrain/core/dispatch.h"

#include "tests/testing.h"

namespace dtrain {
namespace {

struct Range {
  int begin = 0, end = 0;
};

namespace cpu {
int length(Context&, const Range& range) { return range.end - range.begin; }
int& counter(Context&, int& calls) { return ++calls; }
int64_t count(Context&, const Tensor& x, const Tensor&) { return x.count(); }
}  // namespace cpu

TEST(Dispatch, IsAnExpression) {
  const auto context = make_cpu_context();
  EXPECT_EQ(DT_DISPATCH(*context, length)({2, 5}), 3);
  int calls = 0;
  EXPECT_EQ(&DT_DISPATCH(*context, counter)(calls), &calls);
  EXPECT_EQ(calls, 1);
}

TEST(Dispatch, ATensorOfAnotherDeviceIsAnError) {
  for (const auto& context : devices()) {
    const Device device{context->is_cpu() ? DeviceKind::cuda : DeviceKind::cpu, 5};
    const Tensor here = context->zeros({2}), none,
                 elsewhere(std::make_shared<Storage>(context->host_allocator(), 8), 0, {2}, DType::f32, device);
    const auto kernel = choose_arm(*context, "count", cpu::count, cpu::count);
    EXPECT_EQ(kernel(here, none), 2);
    expect_error([&] { kernel(here, elsewhere); }, Fault::config,
                 concat("count: a tensor on ", device, ", expected one on ", context->device()));
  }
}

// As DT_DISPATCH does in a build without CUDA.
TEST(Dispatch, AMissingArmIsAnError) {
  for (const auto& context : devices()) {
    const auto call = [&] { return choose_arm(*context, "length", cpu::length, nullptr)({2, 5}); };
    if (context->is_cpu())
      EXPECT_EQ(call(), 3);
    else
      expect_error([&] { call(); }, Fault::config,
                   "length: this build has no CUDA arm; configure with -DDTRAIN_CUDA=ON");
  }
}

}  // namespace
}  // namespace dtrain
