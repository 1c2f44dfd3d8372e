// Message sizes from text, and gradient buckets of models.
#include "apps/allreduce_benchmark/messages.h"

#include <charconv>
#include <string_view>

#include <fmt/format.h>

#include "apps/cli/vision.h"
#include "dtrain/core/context.h"
#include "dtrain/models/catalog.h"

namespace dtrain::allreduce_benchmark {
namespace {

constexpr int64_t kElement = sizeof(float);

Message of_bytes(int64_t bytes) { return {fmt::format("{} bytes", bytes), bytes / kElement}; }

}  // namespace

int64_t parse_bytes(const std::string& text) {
  int64_t number = 0, unit = 1;
  const char* end = text.data() + text.size();
  auto [at, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc() && end - at == 1) {
    constexpr std::string_view kUnits = "KMG";
    const size_t power = kUnits.find(*at);
    if (power != std::string_view::npos) {
      unit = int64_t{1} << 10 * (power + 1);
      ++at;
    }
  }
  constexpr int64_t kLargest = int64_t{1} << 40;
  DT_CHECK(
      error == std::errc() && at == end && number > 0 && number <= kLargest / unit && number * unit % kElement == 0,
      "expected a size in bytes such as 4096, 64K, 25M or 1G, a multiple of ", kElement, ", found '", text, "'");
  return number * unit;
}

std::vector<Message> range_of_sizes(int64_t min, int64_t max, int64_t factor) {
  DT_CHECK(min <= max, "--min_bytes=", min, " is above --max_bytes=", max);
  std::vector<Message> messages;
  for (int64_t bytes = min; bytes <= max; bytes *= factor) messages.push_back(of_bytes(bytes));
  return messages;
}

std::vector<Message> list_of_sizes(const std::vector<std::string>& sizes) {
  std::vector<Message> messages;
  for (const std::string& size : sizes) messages.push_back(of_bytes(parse_bytes(size)));
  return messages;
}

std::vector<Message> gradients_of(const std::string& model, const std::string& dataset, const BucketOptions& options) {
  const std::unique_ptr<Context> context = make_cpu_context({.threads = 1});
  ParameterStore store(*context);
  models::make_classifier(store, cli::find_model(model, dataset));
  std::vector<GradientRange> gradients;
  for (const Parameter& parameter : store.parameters())
    gradients.push_back({{parameter.offset, parameter.offset + parameter.shape.count()}, !parameter.options().frozen});
  std::vector<Message> messages;
  if (options.bytes == 0) {
    for (auto parameter = store.parameters().rbegin(); parameter != store.parameters().rend(); ++parameter)
      messages.push_back({parameter->name, parameter->shape.count()});
    return messages;
  }
  const std::vector<Range> buckets = plan_buckets(gradients, gradients.back().range.end, options);
  for (const Range& bucket : buckets)
    messages.push_back({fmt::format("bucket {} of {}", messages.size() + 1, buckets.size()), bucket.count()});
  return messages;
}

}  // namespace dtrain::allreduce_benchmark
