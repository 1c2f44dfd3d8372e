// BatchFeed: order, content, and reuse of host memory.
#include "dtrain/train/batch_feed.h"

#include "tests/testing.h"

namespace dtrain {
namespace {

// Host tensor filled with `value`.
template <class T>
Tensor host_tensor(Context& context, Shape shape, T value) {
  auto storage = std::make_shared<Storage>(context.host_allocator(), static_cast<size_t>(shape.count()) * sizeof(T));
  const Tensor tensor(storage, 0, shape, dtype_of<T>(), Device{});
  for (T& x : tensor.span<T>()) x = value;
  return tensor;
}

TEST(BatchFeed, StepsSeeTheirBatchesInOrder) {
  for (const auto& context : devices()) {
    BatchFeed feed(*context);
    const Tensor images = host_tensor<uint8_t>(*context, {3, 5, 7, 3}, 0);
    const Tensor labels = host_tensor<int32_t>(*context, {3}, 0);
    const Tensor seen = context->zeros({40, 3}, DType::i32);
    const Tensor pixels = context->zeros({40, images.count()}, DType::u8);
    for (int i = 0; i < 40; ++i) {
      feed.wait_until_copied();
      for (uint8_t& pixel : images.span<uint8_t>()) pixel = static_cast<uint8_t>(i);
      for (int32_t& label : labels.span<int32_t>()) label = 1000 + i;
      const std::vector<Tensor>& batch = feed.put({images, labels});
      context->copy(batch[0], pixels.slice(i, i + 1));
      context->copy(batch[1], seen.slice(i, i + 1));
    }
    const std::vector<int32_t> found = values_of<int32_t>(*context, seen);
    const std::vector<uint8_t> bytes = values_of<uint8_t>(*context, pixels);
    for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i], 1000 + static_cast<int32_t>(i) / 3);
    for (size_t i = 0; i < bytes.size(); ++i)
      ASSERT_EQ(bytes[i], i / static_cast<size_t>(images.count())) << "pixel " << i << " on " << context->device();
  }
}

TEST(BatchFeed, MicroStepsKeepTheirBatchesAtFixedAddresses) {
  for (const auto& context : devices()) {
    BatchFeed feed(*context, 3);
    std::vector<const void*> addresses;
    for (int step = 0; step < 3; ++step) {
      std::vector<Tensor> batches;
      for (int i = 0; i < 3; ++i) {
        feed.wait_until_copied();
        batches.push_back(feed.put({host_tensor<float>(*context, {4}, static_cast<float>(10 * step + i))})[0]);
        feed.wait_until_copied();
      }
      for (int i = 0; i < 3; ++i) {
        const auto at = static_cast<size_t>(i);
        EXPECT_EQ(values_of<float>(*context, batches[at]), std::vector<float>(4, static_cast<float>(10 * step + i)));
        if (step == 0) addresses.push_back(batches[at].raw());
        EXPECT_EQ(batches[at].raw(), addresses[at]);
      }
    }
  }
}

// The function that makes the first tensor runs before the others are copied.
TEST(BatchFeed, ATensorMayBeMadeOnTheDevice) {
  for (const auto& context : devices()) {
    BatchFeed feed(*context);
    const Tensor made = host_tensor<float>(*context, {3}, -1), labels = host_tensor<int32_t>(*context, {2}, 0);
    const Tensor values = host_tensor<float>(*context, {3}, 0), seen = context->zeros({20, 3});
    if (context->is_cpu()) {
      expect_error([&] { feed.put({made, labels}, [](const Tensor&) {}); }, Fault::config, "where it is, not made");
      continue;
    }
    for (int i = 0; i < 20; ++i) {
      feed.wait_until_copied();
      const std::vector<Tensor>& batch = feed.put({made, labels}, [&](const Tensor& to) {
        for (float& value : values.span<float>()) value = static_cast<float>(i);
        for (int32_t& label : labels.span<int32_t>()) label = 100 + i;
        context->upload(values.raw(), to, Stream::copy);
      });
      context->copy(batch[0], seen.slice(i, i + 1));
      EXPECT_EQ(values_of<int32_t>(*context, batch[1]), std::vector<int32_t>(2, 100 + i));
    }
    const std::vector<float> found = values_of<float>(*context, seen);
    for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i], static_cast<float>(i / 3));
  }
}

TEST(BatchFeed, OnACpuABatchIsReadWhereItIs) {
  const auto context = make_cpu_context();
  BatchFeed feed(*context);
  const Tensor x = host_tensor<float>(*context, {4}, 1);
  EXPECT_EQ(feed.put({x})[0].raw(), x.raw());
}

TEST(BatchFeed, BatchesHaveOneShape) {
  const auto context = make_cpu_context();
  BatchFeed feed(*context, 2);
  feed.put({host_tensor<float>(*context, {4}, 1)});
  expect_error([&] { feed.put({host_tensor<float>(*context, {5}, 1)}); }, Fault::config, "f32 [5], expected f32 [4]");
  expect_error([&] { feed.put({}); }, Fault::config, "a batch of 0 tensors, expected 1");
}

TEST(BatchFeed, RefusesWhatIsNotInHostMemory) {
  for (const auto& context : devices()) {
    BatchFeed feed(*context);
    expect_error([&] { feed.put({Tensor()}); }, Fault::config,
                 "a batch with an undefined tensor, expected host memory");
    const Tensor elsewhere(std::make_shared<Storage>(context->host_allocator(), 4), 0, {1}, DType::f32,
                           {DeviceKind::cuda, 5});
    expect_error([&] { feed.put({elsewhere}); }, Fault::config, "a batch with a tensor on cuda:5");
  }
}

}  // namespace
}  // namespace dtrain
