// Tensors as aliases of storage, and what a CPU context does with them.
#include "libdtrain/core/tensor.h"

#include "tests/testing.h"

namespace dtrain {
namespace {

TEST(Tensor, ViewAndSliceAliasTheStorage) {
  for (const auto& context : devices()) {
    const Tensor x = to_device(*context, Array({3, 4}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
    const Tensor row = x.slice(1, 3).view({8});
    EXPECT_EQ(row.shape(), (Shape{8}));
    EXPECT_EQ(to_host(*context, row).values, (std::vector<double>{4, 5, 6, 7, 8, 9, 10, 11}));
    EXPECT_EQ(to_host(*context, row.slice(2, 3)).values, std::vector<double>{6});
    EXPECT_EQ(x.slice(3, 3).count(), 0);
    context->fill_zero(row.slice(0, 4));
    EXPECT_EQ(to_host(*context, x).values, (std::vector<double>{0, 1, 2, 3, 0, 0, 0, 0, 8, 9, 10, 11}));
  }
}

TEST(Tensor, UniqueMeansThatNoOtherTensorRefersToTheStorage) {
  const auto context = make_cpu_context();
  Tensor x = context->empty({4});
  EXPECT_TRUE(x.unique());
  {
    const Tensor alias = x.slice(0, 1);
    EXPECT_FALSE(x.unique());
  }
  EXPECT_TRUE(x.unique());
}

TEST(Tensor, Refuses) {
  const auto context = make_cpu_context();
  const Tensor x = context->empty({3, 4});
  expect_error([&] { x.data<int32_t>(); }, Fault::config, "holds f32, accessed as i32");
  expect_error([&] { x.view({5}); }, Fault::config, "[3, 4] cannot be seen as [5]");
  expect_error([&] { x.slice(2, 4); }, Fault::config, "rows [2, 4) of [3, 4]");
  expect_error([&] { x.slice(2, 1); }, Fault::config, "rows [2, 1)");
  expect_error([] { Tensor().data<float>(); }, Fault::config, "undefined");
}

TEST(Context, MemoryReturnsWithTheLastReference) {
  const auto context = make_cpu_context();
  const size_t before = context->memory_stats().in_use;
  Tensor x = context->zeros({1000});
  Tensor row = x.slice(10, 20);
  EXPECT_EQ(to_host(*context, x).values, std::vector<double>(1000, 0));
  x = {};
  EXPECT_GE(context->memory_stats().in_use, before + 4000);
  row = {};
  EXPECT_EQ(context->memory_stats().in_use, before);
}

TEST(Context, CopiesAndScalars) {
  for (const auto& context : devices()) {
    const Tensor x = to_device(*context, Array({3}, {1, 2, 3})), y = context->empty({3});
    context->copy(x, y);
    EXPECT_EQ(to_host(*context, y).values, (std::vector<double>{1, 2, 3}));
    expect_error([&] { context->copy(x, y.slice(0, 2)); }, Fault::config, "12 bytes into 8");
    context->set_scalars({.learning_rate = 0.5f, .step = 9});
    EXPECT_EQ(context->get_scalars().learning_rate, 0.5f);
    EXPECT_EQ(context->get_scalars().step, 9u);
    EXPECT_EQ(context->get_scalars().finite, 1);
    // What the device keeps and what the host sets for each step leave each other alone.
    const StepState kept{.loss_scale = 8, .double_after = 5, .good_steps = 3, .finite = 0, .skipped = 2};
    context->set_step_state(kept);
    context->set_scalars({.step = 10});
    const StepScalars scalars = context->get_scalars();
    EXPECT_EQ(static_cast<const StepState&>(scalars), kept);
    EXPECT_EQ(scalars.step, 10u);
  }
}

}  // namespace
}  // namespace dtrain
