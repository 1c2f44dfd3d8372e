// Group and communicators on 1 to 4 ranks, by mpirun over MPI or with DTRAIN_MASTER_ADDR over TCP.
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>

#include <gtest/gtest.h>
#include <unistd.h>

#include "dtrain/distributed/communicator.h"
#include "dtrain/ops/batch_norm.h"
#include "libdtrain/distributed/ring.h"
#include "libdtrain/distributed/wire.h"
#include "tests/distributed/sums.h"

namespace dtrain {
namespace {

LauncherRank launched() {
  return launcher_rank([](const char* name) { return std::getenv(name); });
}

bool over_mpi() { return std::getenv("DTRAIN_MASTER_ADDR") == nullptr; }

// MPI can start only once per process.
Group& group() {
  static const std::unique_ptr<Group> ranks = [] {
    GroupOptions options;
    options.setup_limit = options.step_limit = 60;
    options.warn = [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); };
    options.fail = [](const std::string& report, Fault) {
      std::fprintf(stderr, "%s\n", report.c_str());
      std::_Exit(static_cast<int>(Fault::communication));
    };
    if (over_mpi()) return make_mpi_group(options, launched().size);
    return make_tcp_group(options, tcp_options_from([](const char* name) { return std::getenv(name); }));
  }();
  return *ranks;
}

Context& context() {
  static const std::unique_ptr<Context> cpu = make_cpu_context({.threads = 1});
  return *cpu;
}

Tensor filled(int64_t count, int rank, uint64_t seed) {
  Tensor x = context().empty({count});
  std::memcpy(x.raw(), values_of(count, rank, seed).data(), x.bytes());
  return x;
}

const std::vector<double>& expected_sum(int64_t count, uint64_t seed) {
  static std::map<std::pair<int64_t, uint64_t>, std::vector<double>> made;
  std::vector<double>& sum = made[{count, seed}];
  if (sum.empty()) {
    sum.resize(static_cast<size_t>(count));
    double* into = sum.data();
    for (int rank = 0; rank < group().size(); ++rank) {
      const float* values = values_of(count, rank, seed).data();
      for (int64_t i = 0; i < count; ++i) into[i] += static_cast<double>(values[i]);
    }
  }
  return sum;
}

std::string bytes_of(const Tensor& x) { return {static_cast<const char*>(x.raw()), x.bytes()}; }

void expect_sum(Communicator& communicator, int64_t count, double tolerance, bool exact = false) {
  const auto seed = static_cast<uint64_t>(count);
  const Tensor x = filled(count, group().rank(), seed);
  communicator.all_reduce(std::span(&x, 1), concat("sum of ", count), exact);
  communicator.join();
  ASSERT_NO_FATAL_FAILURE(expect_near(x, expected_sum(count, seed), tolerance));
  for (const std::string& other : group().all_gather(bytes_of(x), "sums"))
    ASSERT_EQ(other, bytes_of(x)) << "not the same bits on all ranks";
}

constexpr int64_t kCounts[] = {1, 7, 16, 1000, 16385, 100003, 1 << 20};

TEST(Group, GathersTextsOfAnySize) {
  for (const size_t size : {0, 1, 247, 248, 249, 5000, 3000000}) {
    const std::string mine(size + static_cast<size_t>(group().rank()), static_cast<char>('a' + group().rank()));
    const std::vector<std::string> all = group().all_gather(mine, "texts");
    ASSERT_EQ(all.size(), static_cast<size_t>(group().size()));
    for (int rank = 0; rank < group().size(); ++rank)
      EXPECT_EQ(all[static_cast<size_t>(rank)],
                std::string(size + static_cast<size_t>(rank), static_cast<char>('a' + rank)));
  }
  EXPECT_EQ(group().extremes(10 - group().rank(), "numbers"),
            std::make_pair(int64_t{11 - group().size()}, int64_t{10}));
  EXPECT_EQ(group().broadcast("from rank " + std::to_string(group().rank()), group().size() - 1, "text"),
            "from rank " + std::to_string(group().size() - 1));
}

// On one or several hosts; compared with the launcher's rank numbers and host names.
TEST(Group, KnowsItsPlaces) {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  const Place& mine = group().places()[static_cast<size_t>(group().rank())];
  EXPECT_EQ(mine.host, host);
  EXPECT_EQ(mine.pid, getpid());
  EXPECT_EQ(mine.local_rank, launched().local_rank);
  EXPECT_EQ(std::to_string(mine.local_size), std::getenv(over_mpi() ? "OMPI_COMM_WORLD_LOCAL_SIZE" : "DTRAIN_SIZE"));
  EXPECT_EQ(group().transport(), over_mpi() ? "MPI" : "TCP");
  EXPECT_EQ(launched().rank, group().rank());
  EXPECT_EQ(launched().size, group().size());

  std::map<std::string, int> nodes;  // by host, in order of first ranks
  std::map<std::string, int> ranks;
  for (const Place& place : group().places()) {
    EXPECT_EQ(place.node, nodes.emplace(place.host, static_cast<int>(nodes.size())).first->second);
    EXPECT_EQ(place.local_rank, ranks[place.host]++);
  }
  for (const Place& place : group().places()) EXPECT_EQ(place.local_size, ranks[place.host]);
}

TEST(Communicator, SumsByEachAlgorithm) {
  for (const char* algorithm : {"auto", "ring", "direct", "doubling"}) {
    SCOPED_TRACE(algorithm);
    const auto communicator =
        make_communicator(group(), context(), {.algorithm = algorithm, .segment = 1000, .even_alone = true});
    for (const int64_t count : kCounts) expect_sum(*communicator, count, 1e-6);
  }
}

// True if this process maps the shared memory of its host's ranks.
bool shares_memory() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find("/memfd:dtrain-sums") != std::string::npos) return true;
  return false;
}

// Through shared memory or, with DTRAIN_TEST_SHARES=0, by messages: part i is added in the order i, i - 1, ..., i + 1.
TEST(Communicator, AddsInAFixedOrder) {
  if (group().places().back().node > 0) return;  // several hosts use an algorithm with another order
  const int ranks = group().size();
  const char* shares = std::getenv("DTRAIN_TEST_SHARES");
  for (const DType wire : {DType::f32, DType::bf16})
    for (int again = 0; again < 2; ++again) {
      const auto communicator = make_communicator(group(), context(), {.wire = wire});
      EXPECT_EQ(shares_memory(), ranks > 1 && (shares == nullptr || shares != std::string("0")));
      for (const int64_t count : {int64_t{16400}, int64_t{100003}, int64_t{600001}}) {
        std::vector<const float*> terms;
        for (int rank = 0; rank < ranks; ++rank) terms.push_back(values_of(count, rank, 11).data());
        const Tensor x = filled(count, group().rank(), 11);
        communicator->all_reduce(std::span(&x, 1), "sum");
        communicator->join();
        const float* found = x.data<float>();
        const std::vector<Range> parts = split({0, count}, ranks);
        const auto rounded = [&](float value) {
          std::byte bytes[sizeof(float)];
          if (ranks > 1) round_to_wire(wire, &value, bytes, 1);
          return value;
        };
        for (int part = 0; part < ranks; ++part)
          for (int64_t i = parts[static_cast<size_t>(part)].begin; i < parts[static_cast<size_t>(part)].end; ++i) {
            float sum = terms[static_cast<size_t>(part)][i];
            for (int distance = 1; distance < ranks; ++distance)
              sum += rounded(terms[static_cast<size_t>((part + ranks - distance) % ranks)][i]);
            const float expected = rounded(sum);
            if (found[i] != expected) FAIL() << i << " of " << count << " is " << found[i] << ", expected " << expected;
          }
      }
    }
}

// 8 and 11 bits of precision, rounded at each step; sums are below 2.
TEST(Communicator, SumsOver16Bits) {
  for (const auto& [wire, tolerance] : {std::pair{DType::bf16, 1.0 / 64}, std::pair{DType::f16, 1.0 / 512}}) {
    SCOPED_TRACE(wire);
    const auto communicator =
        make_communicator(group(), context(), {.wire = wire, .segment = 1000, .even_alone = true});
    EXPECT_EQ(communicator->wire(), wire);
    for (const int64_t count : kCounts) {
      expect_sum(*communicator, count, tolerance);
      expect_sum(*communicator, count, 1e-6, /*exact=*/true);
    }
  }
}

TEST(Communicator, SumsSeveralRangesAsOneMessage) {
  const auto communicator = make_communicator(group(), context(), {.even_alone = true});
  const std::vector<int64_t> counts = {5, 100000, 1};
  std::vector<Tensor> ranges;
  for (size_t i = 0; i < counts.size(); ++i) ranges.push_back(filled(counts[i], group().rank(), i));
  communicator->all_reduce(ranges, "three");
  communicator->join();
  for (size_t i = 0; i < counts.size(); ++i) {
    SCOPED_TRACE(concat("range ", i));
    ASSERT_NO_FATAL_FAILURE(expect_near(ranges[i], expected_sum(counts[i], i), 1e-6));
  }
}

TEST(Communicator, KeepsOrderWithManyUnderWayInTwoLanes) {
  const auto gradients = make_communicator(group(), context(), {.even_alone = true});
  const auto statistics = make_communicator(group(), context(), {.stream = Stream::compute, .even_alone = true});
  std::vector<Tensor> large;
  for (int i = 0; i < 20; ++i) large.push_back(filled(50000 + i, group().rank(), static_cast<uint64_t>(i)));
  for (int i = 0; i < 20; ++i) {
    gradients->all_reduce(std::span(&large[static_cast<size_t>(i)], 1), concat("bucket ", i));
    expect_sum(*statistics, 100 + i, 1e-6);
  }
  gradients->join();
  for (int i = 0; i < 20; ++i) {
    const std::vector<double>& sum = expected_sum(50000 + i, static_cast<uint64_t>(i));
    ASSERT_NEAR(large[static_cast<size_t>(i)].data<float>()[i], sum[static_cast<size_t>(i)], 1e-6) << i;
  }
  const CommunicatorTimes times = gradients->take_times();
  EXPECT_GT(times.busy, 0);
  EXPECT_GT(times.bytes, 20 * 50000 * 4);
}

// With an all-reduce of gradients in progress.
TEST(Communicator, SynchronisesBatchNormBesideGradients) {
  constexpr int64_t kRows = 50, kChannels = 7;
  const auto gradients = make_communicator(group(), context(), {.even_alone = true});
  const auto statistics = make_communicator(group(), context(), {.stream = Stream::compute});
  const Tensor x = filled(kRows * kChannels, group().rank(), 5), bucket = filled(1 << 20, group().rank(), 1 << 20);
  const BatchNormState state{context().zeros({kChannels}), context().zeros({kChannels})};
  gradients->all_reduce(std::span(&bucket, 1), "bucket");
  Tape tape(context());
  const Var parameter = tape.constant(context().zeros({kChannels}));
  batch_norm(tape, tape.constant(x.view({1, kRows, 1, kChannels})), parameter, parameter, state,
             {.momentum = 0, .communicator = statistics.get()});
  gradients->join();
  std::vector<double> mean(kChannels);
  const std::vector<double>& sum = expected_sum(kRows * kChannels, 5);
  for (size_t i = 0; i < sum.size(); ++i) mean[i % kChannels] += sum[i] / static_cast<double>(kRows * group().size());
  for (int64_t c = 0; c < kChannels; ++c)
    EXPECT_NEAR(state.running_mean.data<float>()[c], mean[static_cast<size_t>(c)], 1e-7);
  for (const std::string& other : group().all_gather(bytes_of(state.running_var), "running variances"))
    EXPECT_EQ(other, bytes_of(state.running_var));
}

TEST(Communicator, BroadcastsBytes) {
  const auto communicator = make_communicator(group(), context(), {.even_alone = true});
  for (int root = 0; root < group().size(); ++root)
    for (const int64_t count : kCounts) {
      const auto seed = static_cast<uint64_t>(count);  // the values of expect_sum()
      const Tensor x = filled(count, group().rank(), seed);
      communicator->broadcast(x, root, "values");
      communicator->join();
      ASSERT_EQ(bytes_of(x), bytes_of(filled(count, root, seed)));
    }
}

TEST(Communicator, RefusesWhatItDoesNotKnow) {
  EXPECT_THROW(make_communicator(group(), context(), {.algorithm = "star", .even_alone = true}), Error);
  EXPECT_THROW(make_communicator(group(), context(), {.wire = DType::i32}), Error);
  EXPECT_THROW(group().broadcast("text", group().size(), "text"), Error);
  EXPECT_THROW(group().broadcast("text", -1, "text"), Error);
}

void expect_refusal(const std::function<void()>& action, const std::string& part) {
  try {
    action();
    ADD_FAILURE() << "no Error was thrown; expected one with '" << part << "'";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST(Group, IsTheOnlyOneOfMpi) {
  group();
  if (!over_mpi()) return;
  expect_refusal([] { make_mpi_group({}, launched().size); }, "MPI was already started in this process");
}

// Must be last: it shuts MPI down.
TEST(TheEnd, IsFollowedByNothing) {
  const auto communicator = make_communicator(group(), context(), {.even_alone = true});
  const Tensor x = filled(10, group().rank(), 1);
  group().finish();
  const std::string part = "called after Group::finish()";
  expect_refusal([] { group().barrier("texts"); }, part);
  expect_refusal([&] { communicator->all_reduce(std::span(&x, 1), "sum"); }, part);
  expect_refusal([&] { communicator->broadcast(x, 0, "values"); }, part);
  expect_refusal([] { make_communicator(group(), context(), {.even_alone = true}); }, part);
  expect_refusal([] { group().finish(); }, part);
  if (over_mpi())
    expect_refusal([] { make_mpi_group({}, launched().size); }, "MPI was already started in this process");
  communicator->join();  // nothing is in progress
}

}  // namespace
}  // namespace dtrain

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
