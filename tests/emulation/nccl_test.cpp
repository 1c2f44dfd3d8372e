// NCCL communicator between processes that each emulate a GPU.
#include <csignal>
#include <thread>

#include "libdtrain/distributed/transports.h"
#include "libdtrain/ops/batch_norm_parts.h"
#include "libdtrain/ops/batch_norm_schedule.h"
#include "tests/distributed/ranks.h"
#include "tests/emulation/emulation.h"

namespace dtrain {
namespace {

// One rank of a job.
struct Rank {
  explicit Rank(const CommunicatorOptions& options = {}, double step_limit = 60)
      : group(make_tcp_group(quick_options(step_limit), launched_tcp())),
        context(make_cuda_context()),
        communicator(make_communicator(*group, *context, options)) {}
  int number() const { return group->rank(); }

  // Values with exact sums in any order and wire type: 1 to 50 times 1, 2, 4 or 8.
  Tensor numbers(int64_t count) const {
    std::vector<float> values(static_cast<size_t>(count));
    for (size_t i = 0; i < values.size(); ++i) values[i] = scale(number()) * static_cast<float>(i % 50 + 1);
    return to_device(*context, {count}, values);
  }
  void expect_sum(const Tensor& x, float times = 1) const {
    float scales = 0;
    for (int rank = 0; rank < group->size(); ++rank) scales += scale(rank);
    const std::vector<float> values = values_of<float>(*context, x);
    for (size_t i = 0; i < values.size(); ++i)
      ASSERT_EQ(values[i], times * scales * static_cast<float>(i % 50 + 1)) << "element " << i;
  }

  std::unique_ptr<Group> group;
  std::unique_ptr<Context> context;
  std::unique_ptr<Communicator> communicator;

 private:
  static float scale(int rank) { return static_cast<float>(1 << rank); }
};

constexpr int64_t kLong = 150'001;  // elements: several pieces in the emulation

TEST(Nccl, SumsTheSameBitsOnEachRank) {
  pass_in_ranks(3, [] {
    Rank rank;
    for (const Stream stream : {Stream::communication, Stream::compute}) {
      const auto communicator = make_communicator(*rank.group, *rank.context, {.stream = stream});
      const Tensor a = rank.numbers(kLong), b = rank.numbers(7);
      const std::vector<Tensor> ranges{a, a.slice(0, 0), b};
      communicator->all_reduce(ranges, "gradients");
      communicator->join();
      rank.expect_sum(a);
      rank.expect_sum(b);
      communicator->all_reduce(std::span(&b, 1), "more");
      communicator->join();
      rank.expect_sum(b, 3);
    }
    rank.group->finish();
  });
}

TEST(Nccl, BroadcastsAnyBytes) {
  pass_in_ranks(4, [] {
    Rank rank;
    const Tensor x = to_device(*rank.context, {5}, std::vector<int64_t>(5, 1000 + rank.number()));
    rank.communicator->broadcast(x, 2, "weights");
    rank.communicator->join();
    EXPECT_EQ(values_of<int64_t>(*rank.context, x), std::vector<int64_t>(5, 1002));
    rank.group->finish();
  });
}

TEST(Nccl, RoundsToTheWire) {
  pass_in_ranks(2, [] {
    Rank rank;
    for (const DType wire : {DType::bf16, DType::f16}) {
      const auto communicator = make_communicator(*rank.group, *rank.context, {.wire = wire});
      const Tensor exact = rank.numbers(1001), odd = rank.numbers(3);
      const Tensor thirds = to_device(*rank.context, {1}, std::vector<float>{1.0f / 3});
      const std::vector<Tensor> ranges{odd, exact, thirds};
      communicator->all_reduce(ranges, "gradients");
      communicator->join();
      rank.expect_sum(exact);
      rank.expect_sum(odd);
      const double third = rounded(Array({1}, 1.0f / 3), wire)[0];
      EXPECT_EQ(values_of<float>(*rank.context, thirds)[0], 2 * third);
      const Tensor whole = to_device(*rank.context, {1}, std::vector<float>{1.0f / 3});
      communicator->all_reduce(std::span(&whole, 1), "statistics", /*exact=*/true);
      communicator->join();
      EXPECT_EQ(values_of<float>(*rank.context, whole)[0], 2 * (1.0f / 3));
      // During a capture, buffers cannot grow.
      const Tensor longer = rank.numbers(5000);
      const auto sum = [&] { communicator->all_reduce(std::span(&longer, 1), "gradients"); };
      expect_error([&] { rank.context->capture(sum); }, Fault::config, "run one of this size before the capture");
    }
    rank.group->finish();
  });
}

// Two all-reduces overlapped with compute and one in order, as for gradients and SyncBN.
TEST(Nccl, IsCapturedWithTheStep) {
  pass_in_ranks(2, [] {
    Rank rank;
    const auto in_line = make_communicator(*rank.group, *rank.context, {.stream = Stream::compute});
    const Tensor from = rank.numbers(kLong), sum = rank.context->empty({kLong}), twice = rank.context->empty({kLong});
    const auto step = [&] {
      rank.context->copy(from, twice);
      in_line->all_reduce(std::span(&twice, 1), "statistics");
      rank.context->copy(twice, sum);
      rank.communicator->all_reduce(std::span(&sum, 1), "bucket 0");
      rank.communicator->join();
      rank.context->copy(sum, twice);
    };
    const auto graph = rank.context->capture(step);
    for (int i = 0; i < 5; ++i) {
      rank.context->launch(*graph);
      const Event end = rank.context->record();
      rank.communicator->watch(end);
      if (i % 2 == 0) rank.group->barrier("the host waits elsewhere");
      rank.context->wait(end);
      rank.expect_sum(twice, 2);
      rank.context->fill_zero(twice);
    }
    EXPECT_EQ(rank.communicator->take_times().busy, 0) << "a captured step has no times of its parts";
    step();
    rank.expect_sum(twice, 2);
    rank.group->finish();
  });
}

// Blocks of a batch norm synchronise with each other, and rank 1 waits for rank 0's: an all-reduce kernel that occupied
// their multiprocessors would cause a deadlock.
TEST(Nccl, LeavesBatchNormRoomWhileItWaitsForPeers) {
  pass_in_ranks(2, [] {
    emulation::set_streams(emulation::Streams::eager);
    Rank rank({}, /*step_limit=*/5);
    set_batch_norm_schedule(*rank.context, {.kind = BatchNormSchedule::Kind::resident});
    // So many rows that a block takes a multiprocessor's shared memory.
    const Tensor images = rank.context->zeros({2, 32, 32, 16}), c = rank.context->zeros({16}),
                 sum = rank.numbers(kLong);
    const BatchNormSaved saved{images, {}, {}, c, c, c, c, Activation::relu};
    if (rank.number() == 1) rank.group->barrier("batch norm of rank 0");
    rank.communicator->all_reduce(std::span(&sum, 1), "gradients");
    if (rank.number() == 0) {
      cuda::batch_norm_grad(*rank.context, images, saved, {rank.context->empty(images.shape()), c, c, {}});
      rank.context->synchronize("test");
      rank.group->barrier("batch norm of rank 0");
    }
    rank.communicator->join();
    rank.expect_sum(sum);
    rank.group->finish();
  });
}

TEST(Nccl, TellsWhatItTook) {
  pass_in_ranks(2, [] {
    Rank rank({.algorithm = "ring"});
    EXPECT_EQ(rank.communicator->describe(), "NCCL 2.28.0, ring, f32");
    const Tensor x = rank.numbers(1000);
    if (rank.number() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(300));
    rank.communicator->all_reduce(std::span(&x, 1), "gradients");
    rank.communicator->join();
    rank.context->synchronize("test");
    const CommunicatorTimes times = rank.communicator->take_times(), again = rank.communicator->take_times();
    EXPECT_EQ(times.bytes, 4000);
    EXPECT_GT(times.busy, 0);
    EXPECT_GT(times.exposed, 0);
    EXPECT_EQ(again.busy + again.exposed + again.bytes, 0);
    rank.group->finish();
  });
}

TEST(Nccl, RefusesTwoRanksOfOneGpu) {
  // Threads of a process share a device.
  const int port = free_port();
  std::vector<std::thread> threads;
  for (int number = 0; number < 2; ++number)
    threads.emplace_back([=] {
      const auto group =
          make_tcp_group(quick_options(), {.rank = number, .size = 2, .address = "127.0.0.1", .port = port});
      const auto context = make_cuda_context();
      expect_error([&] { make_communicator(*group, *context); }, Fault::config, "have the same GPU");
      group->finish();
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(Nccl, RefusesWhatItCannotSum) {
  pass_in_ranks(2, [] {
    Rank rank;
    const Tensor x = rank.context->empty({4}, DType::bf16);
    expect_error([&] { rank.communicator->all_reduce(std::span(&x, 1), "x"); }, Fault::config, "expected f32");
    expect_error([&] { rank.communicator->broadcast(x, 2, "x"); }, Fault::config, "from rank 2 of 2");
    expect_error([&] { make_communicator(*rank.group, *rank.context, {.algorithm = "butterfly"}); }, Fault::config,
                 "expected auto, ring, tree");
    rank.group->finish();
  });
}

// Rank 2 skips an all-reduce: the others hang on their GPUs until their watchdogs end them.
TEST(Nccl, EndsAStepThatARankDoesNotComeTo) {
  const auto results = in_ranks(3, [] {
    Rank rank({}, /*step_limit=*/1.5);
    rank.group->enter(Section::step, 7);
    const Tensor x = rank.numbers(1000);
    if (rank.number() == 2) std::this_thread::sleep_for(std::chrono::minutes(2));
    rank.communicator->all_reduce(std::span(&x, 1), "bucket 0");
    rank.communicator->join();
    const Event end = rank.context->record();
    rank.communicator->watch(end);
    rank.context->wait(end);
    FAIL() << "the step came to its end";
  });
  if (is_rank()) return;
  EXPECT_EQ(results[0].code, 4) << results[0].out;
  EXPECT_EQ(results[1].code, 4) << results[1].out;
  EXPECT_TRUE((results[0].out + results[1].out).find("step 7 was enqueued on its GPU") != std::string::npos)
      << results[0].out << results[1].out;
}

TEST(Nccl, EndsWhereAPeerDies) {
  const auto results = in_ranks(2, [] {
    Rank rank({}, /*step_limit=*/60);
    rank.group->enter(Section::step, 9);
    const Tensor x = rank.numbers(1000);
    if (rank.number() == 1) raise(SIGKILL);
    rank.communicator->all_reduce(std::span(&x, 1), "bucket 0");
    rank.communicator->join();
    const Event end = rank.context->record();
    rank.communicator->watch(end);
    rank.context->wait(end);
    FAIL() << "the step came to its end";
  });
  if (is_rank()) return;
  EXPECT_EQ(results[0].code, 4) << results[0].out;
  EXPECT_NE(results[0].out.find("step 9"), std::string::npos) << results[0].out;
  EXPECT_EQ(results[1].code, 128 + SIGKILL);
}

}  // namespace
}  // namespace dtrain
