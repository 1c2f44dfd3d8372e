// Gradient buckets: partition of the arena and order of messages.
#include "dtrain/distributed/bucketer.h"

#include "tests/testing.h"

namespace dtrain {
namespace {

// Records the all-reduced ranges.
class Recorder : public Communicator {
 public:
  explicit Recorder(Group& group, DType wire = DType::f32) : Communicator(group, {.wire = wire}) {}
  void all_reduce(std::span<const Tensor> ranges, const std::string& what, bool exact) override {
    messages.push_back(exact ? what + ", exact" : what);
    for (const Tensor& range : ranges) sizes.push_back(range.count());
    sizes.push_back(0);
  }
  void broadcast(const Tensor&, int, const std::string&) override {}
  void join() override { messages.push_back("join"); }
  std::string describe() const override { return ""; }
  CommunicatorTimes take_times() override { return {}; }

  std::vector<std::string> messages;
  std::vector<int64_t> sizes;  // of each message's ranges, with 0 after each message
};

constexpr int64_t kFloat = sizeof(float);

std::vector<GradientRange> parameters_of(const std::vector<int64_t>& counts) {
  std::vector<GradientRange> parameters;
  int64_t at = 0;
  for (const int64_t count : counts) {
    parameters.push_back({{at, at + count}, true});
    at += (count + 63) / 64 * 64;  // the arenas' layout
  }
  return parameters;
}

TEST(Buckets, CoverTheArenaFromItsEndAndKeepParametersWhole) {
  const std::vector<std::vector<int64_t>> models = {{10}, {64, 64, 64}, {1, 1000, 5, 5000, 64, 300, 2}, {100000, 3}};
  for (const auto& counts : models)
    for (const int64_t bytes : {kFloat, 1000 * kFloat, int64_t{1} << 30})
      for (const int64_t last : {kFloat, 130 * kFloat, int64_t{1} << 30}) {
        const std::vector<GradientRange> parameters = parameters_of(counts);
        const int64_t total = parameters.back().range.end + 7;
        int64_t end = total;
        const std::vector<Range> buckets = plan_buckets(parameters, total, {.bytes = bytes, .last_bytes = last});
        for (const Range& bucket : buckets) {
          EXPECT_EQ(bucket.end, end);
          end = bucket.begin;
          int whole = 0;
          for (const GradientRange& parameter : parameters) {
            const bool inside = parameter.range.begin >= bucket.begin && parameter.range.end <= bucket.end;
            EXPECT_TRUE(inside || !parameter.range.overlaps(bucket));
            whole += inside;
          }
          EXPECT_GT(whole, 0);
          if (whole > 1) {
            EXPECT_LE(bucket.count() * kFloat, std::max(bytes, last) + 64 * kFloat);
          }
        }
        EXPECT_EQ(end, 0);
      }
}

TEST(Buckets, TheLastIsShort) {
  const std::vector<GradientRange> parameters = parameters_of({64, 64, 64, 6400, 6400});
  const std::vector<Range> buckets =
      plan_buckets(parameters, parameters.back().range.end, {.bytes = 10000 * kFloat, .last_bytes = 128 * kFloat});
  ASSERT_EQ(buckets.size(), 3u);
  EXPECT_EQ(buckets[0].count(), 6400);
  EXPECT_EQ(buckets[1].count(), 6464);
  EXPECT_EQ(buckets[2].count(), 128);
}

struct Rehearsal {
  explicit Rehearsal(DType wire = DType::f32) : recorder(*group, wire) {}

  std::unique_ptr<Group> group = make_single_group();
  std::unique_ptr<Context> context = make_cpu_context({.threads = 1});
  Recorder recorder;
  Tensor tail = context->zeros({3});

  std::vector<std::string> messages(std::vector<GradientRange> parameters, const std::vector<int>& order,
                                    bool at_the_end = false) {
    const Tensor arena = context->zeros({parameters.back().range.end});
    Bucketer bucketer(recorder, arena, std::move(parameters), {.bytes = 64 * kFloat, .last_bytes = 64 * kFloat});
    recorder.messages.clear();
    bucketer.begin(at_the_end);
    for (const int parameter : order) {
      recorder.messages.push_back(concat(parameter));
      bucketer.ready(parameter);
    }
    bucketer.finish({tail});
    return recorder.messages;
  }
};

TEST(Bucketer, SendsInItsOwnOrderAsSoonAsItCan) {
  const std::vector<GradientRange> parameters = parameters_of({64, 64, 64, 64});
  EXPECT_EQ(Rehearsal().messages(parameters, {3, 2, 1, 0}),
            (std::vector<std::string>{"3", "bucket 1 of 4", "2", "bucket 2 of 4", "1", "bucket 3 of 4", "0",
                                      "bucket 4 of 4", "join"}));
  EXPECT_EQ(Rehearsal().messages(parameters, {0, 2, 1, 3}),
            (std::vector<std::string>{"0", "2", "1", "3", "bucket 1 of 4", "bucket 2 of 4", "bucket 3 of 4",
                                      "bucket 4 of 4", "join"}));
}

TEST(Bucketer, SendsAllAtTheEndWhereThatIsAskedFor) {
  std::vector<GradientRange> parameters = parameters_of({64, 64, 64});
  EXPECT_EQ(Rehearsal().messages(parameters, {2, 1, 0}, /*at_the_end=*/true),
            (std::vector<std::string>{"2", "1", "0", "bucket 1 of 3", "bucket 2 of 3", "bucket 3 of 3", "join"}));
  parameters[2].trained = false;
  EXPECT_EQ(Rehearsal().messages(parameters, {1, 0}, /*at_the_end=*/true),
            (std::vector<std::string>{"1", "0", "bucket 1 of 3", "bucket 2 of 3", "bucket 3 of 3", "join"}));
}

TEST(Bucketer, FrozenParametersAreNotWaitedFor) {
  std::vector<GradientRange> parameters = parameters_of({64, 64, 64, 64});
  parameters[0].trained = parameters[3].trained = false;
  EXPECT_EQ(
      Rehearsal().messages(parameters, {2, 1}),
      (std::vector<std::string>{"bucket 1 of 4", "2", "bucket 2 of 4", "1", "bucket 3 of 4", "bucket 4 of 4", "join"}));
}

TEST(Bucketer, TheTailGoesWithTheLastBucketUnlessThatIsLong) {
  Rehearsal run;
  run.messages(parameters_of({64, 64}), {1, 0});
  EXPECT_EQ(run.recorder.sizes, (std::vector<int64_t>{64, 0, 64, 3, 0}));
  Rehearsal with_long;
  with_long.messages(parameters_of({1 << 21, 64}), {1, 0});
  EXPECT_EQ(with_long.recorder.sizes, (std::vector<int64_t>{64, 0, 1 << 21, 0, 3, 0}));
}

TEST(Bucketer, TheTailIsNotRounded) {
  Rehearsal run(DType::bf16);
  EXPECT_EQ(run.messages(parameters_of({64, 64}), {1, 0}),
            (std::vector<std::string>{"1", "bucket 1 of 2", "0", "bucket 2 of 2", "statistics, exact", "join"}));
  EXPECT_EQ(run.recorder.sizes, (std::vector<int64_t>{64, 0, 64, 0, 3, 0}));
}

TEST(Bucketer, RefusesToEndBeforeAllIsThere) {
  expect_error([] { Rehearsal().messages(parameters_of({64, 64}), {1}); }, Fault::config, "parameters are missing");
  expect_error([] { plan_buckets(parameters_of({64}), 64, {.bytes = 0}); }, Fault::config, "0 bytes");
}

}  // namespace
}  // namespace dtrain
