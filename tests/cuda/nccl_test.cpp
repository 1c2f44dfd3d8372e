// NCCL with one rank, which executes all of its calls: available, sums unchanged, capturable.
#include "dtrain/distributed/communicator.h"
#include "dtrain/ops/pointwise.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

class OneRank : public testing::Test {
 protected:
  void SetUp() override {
    std::string reason;
    if (cuda_device_count(&reason) == 0) GTEST_SKIP() << "SKIPPED: no GPU: " << reason;
    context_ = make_gpu_context();
  }
  std::unique_ptr<Communicator> communicator(CommunicatorOptions options = {}) {
    options.even_alone = true;
    return make_communicator(*group_, *context_, options);
  }
  // All-reduces `buckets` of x twice in a row; y receives the result.
  void step(Communicator& all, const Tensor& x, const Tensor& y) {
    for (int round = 0; round < 2; ++round) {
      const Tensor buckets[] = {x.slice(0, 1000), x.slice(1000, x.dim(0))};
      for (const Tensor& bucket : buckets) all.all_reduce(std::span(&bucket, 1), "bucket");
      all.join();
      accumulate(*context_, x, y);
    }
  }

  const std::unique_ptr<Group> group_ = make_single_group();
  std::unique_ptr<Context> context_;
};

TEST_F(OneRank, RecordedGivesTheSameBitsAsEager) {
  const Array start = random_array({5003}, 1);
  for (const DType wire : {DType::f32, DType::bf16, DType::f16}) {
    for (const Stream stream : {Stream::communication, Stream::compute}) {
      const auto all = communicator({.wire = wire, .stream = stream});
      std::vector<std::vector<float>> results;
      for (const bool recorded : {false, true}) {
        const Tensor x = to_device(*context_, start), y = context_->zeros(x.shape());
        std::shared_ptr<cuda::StepGraph> graph;
        if (recorded) graph = context_->capture([&] { step(*all, x, y); });
        for (int i = 0; i < 3; ++i) {
          if (recorded)
            context_->launch(*graph);
          else
            step(*all, x, y);
          const Event end = context_->record();
          all->watch(end);
          context_->wait(end);
        }
        results.push_back(values_of<float>(*context_, y));
      }
      EXPECT_EQ(results[0], results[1]);
      Array expected = rounded(start, wire);
      for (double& value : expected.values) value = static_cast<float>(6 * value);
      expect_close(to_host(*context_, to_device(*context_, start.shape, results[0])), expected, 1e-6, "six times x");
    }
  }
}

TEST_F(OneRank, BroadcastsToItself) {
  const auto all = communicator();
  const Tensor x = to_device(*context_, {3}, std::vector<int32_t>{1, 2, 3});
  all->broadcast(x, 0, "weights");
  all->join();
  EXPECT_EQ(values_of<int32_t>(*context_, x), (std::vector<int32_t>{1, 2, 3}));
}

TEST_F(OneRank, CanBeToldWhichAlgorithm) {
  const auto all = communicator({.algorithm = "ring"});
  const Tensor x = to_device(*context_, random_array({1 << 16}, 2));
  const std::vector<float> before = values_of<float>(*context_, x);
  all->all_reduce(std::span(&x, 1), "x");
  all->broadcast(x, 0, "x");
  all->join();
  EXPECT_EQ(values_of<float>(*context_, x), before);
  EXPECT_NE(all->describe().find(", ring, f32"), std::string::npos) << all->describe();
  EXPECT_EQ(all->take_times().bytes, 4.0 * (1 << 16));
}

}  // namespace
}  // namespace dtrain
