// Filling, timing, checking.
#include "apps/allreduce_benchmark/measure.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "dtrain/train/metrics.h"
#include "libdtrain/distributed/read_texts.h"

namespace dtrain::allreduce_benchmark {
namespace {

constexpr int64_t kPeriod = 4;

// Small integers, different on each rank: sums up to 256 are exact in 16 bits too.
float term(int64_t i, int rank) { return static_cast<float>((i + rank) % kPeriod); }

std::vector<float> terms_of(int64_t count, int rank) {
  std::vector<float> terms(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) terms[static_cast<size_t>(i)] = term(i, rank);
  return terms;
}

int64_t count_wrong(std::span<const float> sums, int ranks) {
  constexpr float kExact = 256, kRounding = 1.0f / 64;
  std::array<float, kPeriod> expected{};
  for (int64_t i = 0; i < kPeriod; ++i)
    for (int rank = 0; rank < ranks; ++rank) expected[static_cast<size_t>(i)] += term(i, rank);
  int64_t wrong = 0;
  for (size_t i = 0; i < sums.size(); ++i) {
    const float sum = expected[i % kPeriod];
    const bool right = sum <= kExact ? sums[i] == sum : std::abs(sums[i] - sum) <= kRounding * sum;
    wrong += right ? 0 : 1;
  }
  return wrong;
}

std::vector<float> downloaded(Context& context, const Tensor& x) {
  std::vector<float> values(static_cast<size_t>(x.count()));
  context.download(x, values.data(), "sums");
  return values;
}

// Time of the slowest rank, per iteration.
std::vector<double> slowest(Group& group, const std::vector<double>& times) {
  std::vector<double> longest(times.size(), 0);
  const std::string mine(reinterpret_cast<const char*>(times.data()), times.size() * sizeof(double));
  read_texts(group, mine, "times", [&](int, const std::string& theirs) {
    DT_CHECK(theirs.size() == mine.size(), theirs.size(), " bytes, expected ", mine.size());
    for (size_t i = 0; i < longest.size(); ++i) {
      double time = 0;
      std::memcpy(&time, theirs.data() + i * sizeof time, sizeof time);
      longest[i] = std::max(longest[i], time);
    }
  });
  return longest;
}

}  // namespace

Row measure(Communicator& communicator, Context& context, const std::string& name, std::span<const Message> messages,
            const Repeats& repeats) {
  Group& group = communicator.group();
  Row row{.name = name};
  int64_t count = 0;
  for (const Message& message : messages) count += message.count;
  row.bytes = count * static_cast<int64_t>(sizeof(float));
  const Tensor terms = context.empty({count}), sums = context.empty({count});
  context.upload(terms_of(count, group.rank()).data(), terms);

  std::vector<double> times;
  for (int64_t i = 0; i < repeats.warmup + repeats.iterations; ++i) {
    context.copy(terms, sums);
    context.synchronize("the terms");
    group.barrier("the ranks before an iteration");  // in which waiting threads fall asleep
    group.barrier("the start of an iteration");      // a barrier that all leave at the same time
    const Event begin = context.record();
    int64_t at = 0;
    for (const Message& message : messages) {
      const Tensor part = sums.slice(at, at + message.count);
      communicator.all_reduce(std::span(&part, 1), message.name);
      at += message.count;
    }
    communicator.join();
    const Event end = context.record();
    context.wait(end);
    if (i >= repeats.warmup) times.push_back(context.seconds_between(begin, end));
    group.barrier("the end of an iteration");  // verification on one rank must not slow the all-reduce of another
    row.wrong += count_wrong(downloaded(context, sums), group.size());
  }
  row.seconds = median(slowest(group, times));
  int64_t wrong = 0;
  read_texts(group, std::to_string(row.wrong), "errors", [&](int, const std::string& theirs) {
    constexpr int64_t kMost = int64_t{1} << 50;
    const auto one = number_in<int64_t>(theirs);
    DT_CHECK(one >= 0 && one <= kMost, one);
    wrong += one;
  });
  row.wrong = wrong;
  return row;
}

}  // namespace dtrain::allreduce_benchmark
