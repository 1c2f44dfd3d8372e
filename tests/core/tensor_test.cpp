// Tensors as aliases of storage, and operations of a CPU context.
#include "dtrain/core/tensor.h"

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
  expect_error([&] { x.slice(-1, 1); }, Fault::config, "rows [-1, 1)");
  expect_error([&] { x.dim(9); }, Fault::config, "dimension 9 of [3, 4]");
}

TEST(Tensor, AnUndefinedOneRefuses) {
  const Tensor none;
  expect_error([&] { none.data<float>(); }, Fault::config, "undefined");
  expect_error([&] { none.raw(); }, Fault::config, "undefined");
  expect_error([&] { none.view({}); }, Fault::config, "view of an undefined tensor");
  expect_error([&] { none.slice(0, 1); }, Fault::config, "slice of an undefined tensor");
  expect_error([&] { none.dim(0); }, Fault::config, "dimension 0");
}

TEST(Tensor, DoesNotReachBeyondItsStorage) {
  const auto storage = std::make_shared<Storage>(std::make_shared<HostAllocator>(), 64);
  const auto tensor = [&](size_t offset, Shape shape) { return Tensor(storage, offset, shape, DType::f32, {}); };
  EXPECT_EQ(tensor(16, {12}).count(), 12);
  expect_error([&] { tensor(16, {13}); }, Fault::config, "f32 [13] at byte 16 of a storage of 64 bytes");
  expect_error([&] { tensor(65, {0}); }, Fault::config, "at byte 65");
  expect_error([&] { Tensor(nullptr, 0, {1}, DType::f32, {}); }, Fault::config, "without storage");
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

TEST(Context, ATensorMayOutliveIt) {
  for (auto& context : devices()) {
    const bool on_host = context->is_cpu();
    Tensor x = to_device(*context, Array({3}, {1, 2, 3}));
    const Tensor row = x.slice(1, 3);
    context.reset();
    if (on_host) {
      EXPECT_EQ(row.span<float>()[1], 3);
      x.span<float>()[1] = 7;
      EXPECT_EQ(row.span<float>()[0], 7);
    }
    x = {};  // the last tensor returns the pool to the device
  }
}

TEST(Context, RefusesWhatNoMemoryHolds) {
  for (const auto& context : devices()) {
    expect_error([&] { context->empty({int64_t{1} << 32, int64_t{1} << 32}); }, Fault::config, "elements");
    expect_error([&] { context->empty({int64_t{1} << 59}, DType::i64); }, Fault::resource, "out of memory");
    expect_error([&] { context->empty({3, -4}); }, Fault::config, "-4");
  }
  CachingAllocator pool(std::make_unique<HostAllocator>());
  expect_error([&] { pool.allocate(SIZE_MAX); }, Fault::resource, "out of memory");
  expect_error([&] { HostAllocator().allocate(SIZE_MAX); }, Fault::resource, "out of host memory");
  expect_error([] { make_cpu_context({.threads = -1}); }, Fault::config, "-1 threads");
  expect_error([] { make_cpu_context({.threads = 1 << 30}); }, Fault::config, "1073741824 threads");
}

TEST(Context, RefusesTensorsThatAreUndefinedOrElsewhere) {
  for (const auto& context : devices()) {
    const Tensor none, x = context->zeros({3});
    const Device other{context->is_cpu() ? DeviceKind::cuda : DeviceKind::cpu, 5};
    const Tensor elsewhere(std::make_shared<Storage>(context->host_allocator(), 12), 0, {3}, DType::f32, other);
    std::vector<float> host(3);
    for (const auto& [bad, part] :
         {std::pair(none, std::string("an undefined tensor")),
          std::pair(elsewhere, concat("a tensor on ", other, ", expected one on ", context->device()))}) {
      const std::vector<std::function<void()>> misuses = {
          [&, y = bad] { context->fill_zero(y); },
          [&, y = bad] { context->copy(y, x); },
          [&, y = bad] { context->copy(x, y); },
          [&, y = bad] { context->upload(host.data(), y); },
          [&, y = bad] { context->download(y, host.data(), "download"); },
          [&, y = bad] { context->download_later(y, host.data()); },
      };
      for (size_t i = 0; i < misuses.size(); ++i) {
        SCOPED_TRACE(i);
        expect_error(misuses[i], Fault::config, part);
      }
    }
    expect_error([&] { context->upload(nullptr, x); }, Fault::config, "upload: 12 bytes at a null address");
    expect_error([&] { context->download(x, nullptr, "download"); }, Fault::config,
                 "download: 12 bytes at a null address");
    expect_error([&] { context->download_later(x, nullptr); }, Fault::config,
                 "download_later: 12 bytes at a null address");
    context->upload(nullptr, context->empty({0}));
  }
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
    // Device state and host inputs do not overwrite each other.
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
