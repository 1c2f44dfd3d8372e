// CUDA graphs: capture and launch; streams, events and asynchronous copies.
#include <cstring>
#include <set>

#include "dtrain/ops/pointwise.h"
#include "libdtrain/cuda/runtime.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

constexpr int64_t kCount = 3000;

class StepGraph : public testing::Test {
 protected:
  void SetUp() override {
    std::string reason;
    if (cuda_device_count(&reason) == 0) GTEST_SKIP() << "SKIPPED: no GPU: " << reason;
    context_ = make_gpu_context();
  }
  Tensor filled(float value) { return to_device(*context_, Array({kCount}, value)); }
  std::vector<float> values(const Tensor& x) { return values_of<float>(*context_, x); }

  // y += 3 x through two temporaries; `temporaries` receives their addresses.
  void add_thrice(const Tensor& x, const Tensor& y, std::vector<char*>* temporaries = nullptr) {
    Tape tape(*context_);
    const Var two = add(tape, tape.constant(x), tape.constant(x));
    const Var three = add(tape, two, tape.constant(x));
    accumulate(*context_, three.value, y);
    if (temporaries)
      for (const Var& value : {two, three}) temporaries->push_back(static_cast<char*>(value.value.raw()));
  }

  std::unique_ptr<Context> context_;
};

TEST_F(StepGraph, LaunchesOnNewValues) {
  const Tensor x = filled(1), y = filled(0);
  const auto graph = context_->capture([&] { add_thrice(x, y); });
  EXPECT_FALSE(context_->capturing());
  EXPECT_EQ(values(y), std::vector<float>(kCount, 0)) << "recording runs nothing";
  context_->launch(*graph);
  context_->copy(filled(10), x);
  context_->launch(*graph);
  context_->launch(*graph);
  EXPECT_EQ(values(y), std::vector<float>(kCount, 3 + 30 + 30));
}

// Of kernels that are ready at once, those other ranks wait for start first, in graphs too.
TEST_F(StepGraph, CommunicationStreamHasPriority) {
  const cuda::Runtime& runtime = context_->runtime();
  int compute = 0, communication = 0;
  ASSERT_EQ(cudaStreamGetPriority(runtime.compute(), &compute), cudaSuccess);
  ASSERT_EQ(cudaStreamGetPriority(runtime.communication(), &communication), cudaSuccess);
  EXPECT_LT(communication, compute);
  const Tensor x = filled(1), y = filled(0);
  const auto graph = context_->capture([&] {
    context_->wait(Stream::communication, context_->record(Stream::compute));
    ASSERT_EQ(cudaMemsetAsync(y.raw(), 0, y.bytes(), runtime.communication()), cudaSuccess);
    context_->wait(Stream::compute, context_->record(Stream::communication));
    add_thrice(x, y);
  });
  for (int i = 0; i < 2; ++i) context_->launch(*graph);
  EXPECT_EQ(values(y), std::vector<float>(kCount, 3));
}

// Graphs never run concurrently.
TEST_F(StepGraph, GraphsShareTheirPool) {
  const Tensor x = filled(1), y = filled(0), z = filled(0);
  std::vector<char*> temporaries, others;
  const auto graph = context_->capture([&] { add_thrice(x, y, &temporaries); });
  Tensor kept;
  const auto other = context_->capture([&] {
    add_thrice(x, z, &others);
    kept = context_->empty({kCount});
    context_->copy(x, kept);
  });
  EXPECT_TRUE(temporaries == others) << "the second has a separate pool";
  context_->launch(*other);
  for (int i = 0; i < 2; ++i) context_->launch(*graph);
  context_->launch(*other);
  EXPECT_EQ(values(y), std::vector<float>(kCount, 6));
  EXPECT_EQ(values(z), std::vector<float>(kCount, 6));
  EXPECT_EQ(values(kept), std::vector<float>(kCount, 1));
}

TEST_F(StepGraph, NothingElseTakesTheMemoryOfItsTemporaries) {
  const Tensor x = filled(1), y = filled(0);
  std::vector<char*> temporaries;
  const auto graph = context_->capture([&] { add_thrice(x, y, &temporaries); });
  ASSERT_EQ(temporaries.size(), 2u);
  std::vector<Tensor> others;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 20; ++i) others.push_back(filled(1e9f));
    context_->launch(*graph);
  }
  for (const Tensor& other : others) {
    for (const char* temporary : temporaries)
      EXPECT_TRUE(static_cast<char*>(other.raw()) + other.bytes() <= temporary ||
                  temporary + kCount * sizeof(float) <= static_cast<char*>(other.raw()));
    EXPECT_EQ(values(other), std::vector<float>(kCount, 1e9f));
  }
  EXPECT_EQ(values(y), std::vector<float>(kCount, 9));
}

TEST_F(StepGraph, RefusesToWaitWhileRecordingAndGoesOnAfterwards) {
  const Tensor x = filled(1), y = filled(0);
  std::vector<float> host(kCount);
  const std::vector<std::pair<std::function<void()>, std::string>> refused = {
      {[&] { context_->download(y, host.data(), "top_k"); }, "top_k: waits for the device"},
      {[&] { context_->synchronize("roi_align"); }, "roi_align: waits for the device"},
      {[&] { context_->upload(host.data(), y); }, "upload: "},
      {[&] { context_->set_scalars({}); }, "set_scalars: "},
      {[&] { context_->wait(Event{}); }, "wait: "},
      {[&] { context_->capture([] {}); }, "capture: "},
      {[&] { throw Error(Fault::data, "of the forward pass"); }, "of the forward pass"},
  };
  for (const auto& [call, message] : refused) {
    try {
      context_->capture([&, &step = call] {
        add_thrice(x, y);
        step();
      });
      ADD_FAILURE() << message;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(message), std::string::npos) << error.what();
    }
    EXPECT_FALSE(context_->capturing());
    context_->synchronize("test");
  }
  const auto graph = context_->capture([&] { add_thrice(x, y); });
  context_->launch(*graph);
  EXPECT_EQ(values(y), std::vector<float>(kCount, 3));
}

TEST_F(StepGraph, KeepsItsMemoryAndGivesItBack) {
  const Tensor x = filled(1), y = filled(0);
  const size_t before = context_->memory_stats().reserved;
  auto graph = context_->capture([&] { add_thrice(x, y); });
  const MemoryStats with = context_->memory_stats();
  EXPECT_GT(with.reserved, before);
  EXPECT_GE(with.peak_in_use, 4 * kCount * sizeof(float));
  context_->launch(*graph);
  context_->synchronize("test");
  graph = nullptr;
  EXPECT_EQ(context_->memory_stats().reserved, before);
}

TEST_F(StepGraph, EachLaunchHasItsOwnStamps) {
  const Tensor x = filled(1), y = filled(0);
  const auto graph = context_->capture([&] {
    context_->stamp();
    add_thrice(x, y);
    context_->stamp();
  });
  const Event begin = context_->record();
  std::set<void*> events;
  for (int round = 0; round < 2; ++round) {
    std::vector<std::vector<Event>> launches;  // all are enqueued before any is read
    for (int i = 0; i < 3; ++i) launches.push_back(context_->launch(*graph));
    context_->wait(context_->record());
    double last = 0;
    for (const std::vector<Event>& stamps : launches) {
      ASSERT_EQ(stamps.size(), 2u);
      for (const Event& stamp : stamps) {
        const double at = context_->seconds_between(begin, stamp);
        EXPECT_GT(at, last);
        last = at;
        events.insert(stamp.device.get());
      }
    }
  }
  EXPECT_EQ(events.size(), 6u) << "the events of the first round are reused in the second";
}

TEST(CpuContext, RecordsNothing) {
  const auto cpu = make_cpu_context();
  expect_error([&] { cpu->capture([] {}); }, Fault::config, "cannot be captured on cpu");
}

TEST_F(StepGraph, RunsOutOfMemoryByName) {
  const auto small = make_gpu_context({.memory_cap = size_t{96} << 20});
  const Tensor held = small->empty({60 << 20}, DType::u8);
  expect_error([&] { small->capture([&] { small->empty({40 << 20}, DType::u8); }); }, Fault::resource,
               "out of memory: 40 MiB requested, 0 MiB in use of a limit of 4 MiB");
  EXPECT_FALSE(small->capturing());
}

TEST(Events, CopiesArriveInStreamOrder) {
  for (const auto& context : devices()) {
    const auto storage = std::make_shared<Storage>(context->host_allocator(), 3 * kCount * sizeof(float));
    auto* host = static_cast<float*>(storage->data());
    for (int64_t i = 0; i < kCount; ++i) host[i] = static_cast<float>(i);
    const Tensor staged = context->empty({kCount}), sum = context->zeros({kCount});
    const Event begin = context->record();
    context->wait(Stream::copy, begin);
    context->upload(host, staged, Stream::copy);
    const Event copied = context->record(Stream::copy);
    context->wait(Stream::compute, copied);
    accumulate(*context, staged, sum);
    const Event once = context->download_later(sum, host + kCount);
    accumulate(*context, staged, sum);
    const Event twice = context->download_later(sum, host + 2 * kCount);
    context->wait(twice);
    EXPECT_TRUE(context->is_past(copied) && context->is_past(once) && context->is_past(twice));
    EXPECT_TRUE(context->is_past(Event{}));
    EXPECT_GE(context->seconds_between(begin, twice), 0);
    for (int64_t i = 0; i < kCount; ++i) {
      ASSERT_EQ(host[kCount + i], static_cast<float>(i));
      ASSERT_EQ(host[2 * kCount + i], static_cast<float>(2 * i));
    }
  }
}

}  // namespace
}  // namespace dtrain
