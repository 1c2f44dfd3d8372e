// DT_DISPATCH as an expression, and errors of builds without CUDA.
#include "dtrain/core/dispatch.h"

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

struct Sums {
  Tensor of{}, twice{};
  auto tensors() const { return std::tie(of, twice); }
};
void add_up(Context&, std::span<const Tensor> terms, float factor, const Sums& sums) {
  for (const Tensor& term : terms)
    for (int64_t i = 0; i < term.count(); ++i) {
      sums.of.data<float>()[i] += factor * term.data<float>()[i];
      if (sums.twice) sums.twice.data<float>()[i] = 2 * sums.of.data<float>()[i];
    }
}
void types(Context&, const Tensor& x, std::vector<DType>& seen) { seen.push_back(x.dtype()); }
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

TEST(Dispatch, AKernelOfF32TakesTensorsOfBf16) {
  const auto context = make_cpu_context();
  const auto bf16 = [&](std::initializer_list<double> values) {
    return to_device(*context, Array({static_cast<int64_t>(values.size())}, values), DType::bf16);
  };
  const Tensor x = bf16({1, 256, NAN}), sum = bf16({0.5, 1, 0}), twice = context->zeros({3});
  const std::vector<Tensor> terms{x, x, x.slice(0, 1)};
  DT_DISPATCH(*context, add_up)(terms, 0.5f, cpu::Sums{sum, twice});
  EXPECT_EQ(to_host(*context, sum.slice(0, 2)).values, (std::vector<double>{2, 256}));  // 257 has nine bits
  EXPECT_EQ(to_host(*context, twice.slice(0, 2)).values, (std::vector<double>{4, 514}));
  EXPECT_TRUE(std::isnan(to_host(*context, sum)[2]));
  // A read-write tensor, and an undefined one.
  DT_DISPATCH(*context, add_up)({{sum.slice(0, 1)}}, 1.0f, {sum.slice(0, 1), Tensor()});
  EXPECT_EQ(to_host(*context, sum)[0], 4);
  EXPECT_EQ(to_host(*context, x.slice(0, 2)).values, (std::vector<double>{1, 256}));
}

TEST(Dispatch, AKernelMayTakeBf16Itself) {
  const auto context = make_cpu_context();
  std::vector<DType> seen;
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const bool takes_bf16 : {false, true})
      choose_arm(*context, "types", cpu::types, cpu::types, takes_bf16)(context->zeros({1}, dtype), seen);
  EXPECT_EQ(seen, (std::vector{DType::f32, DType::f32, DType::f32, DType::bf16}));
}

// As DT_DISPATCH in a build without CUDA.
TEST(Dispatch, AMissingCudaBuildIsAnError) {
  for (const auto& context : devices()) {
    const auto call = [&] { return choose_arm(*context, "length", cpu::length, nullptr)({2, 5}); };
    if (context->is_cpu())
      EXPECT_EQ(call(), 3);
    else
      expect_error([&] { call(); }, Fault::config, "length: built without CUDA; configure with -DDTRAIN_CUDA=ON");
  }
}

}  // namespace
}  // namespace dtrain
