// Bucket partition, readiness counts and ordered sends.
#include "dtrain/distributed/bucketer.h"

namespace dtrain {

std::vector<Range> plan_buckets(const std::vector<GradientRange>& parameters, int64_t total,
                                const BucketOptions& options) {
  DT_CHECK(options.bytes > 0 && options.last_bytes > 0, "gradient buckets of ", options.bytes, " bytes, the last of ",
           options.last_bytes, ": expected more than none");
  const auto elements = [](int64_t bytes) { return bytes / static_cast<int64_t>(sizeof(float)); };
  std::vector<Range> buckets;
  if (parameters.empty()) return buckets;
  // The last bucket holds the first parameters: as many as fit, at least one.
  size_t first = 1;
  while (first < parameters.size() && parameters[first].range.end <= elements(options.last_bytes)) ++first;
  int64_t end = total;
  for (size_t i = parameters.size(); i-- > first;) {
    const bool fits = i > first && end - parameters[i - 1].range.begin <= elements(options.bytes);
    if (fits) continue;
    buckets.push_back({parameters[i].range.begin, end});
    end = parameters[i].range.begin;
  }
  buckets.push_back({0, end});
  return buckets;
}

Bucketer::Bucketer(Communicator& communicator, const Tensor& arena, std::vector<GradientRange> parameters,
                   const BucketOptions& options)
    : communicator_(communicator), arena_(arena.view({arena.count()})), parameters_(std::move(parameters)) {
  plan(options);
}

void Bucketer::plan(const BucketOptions& options) {
  buckets_ = plan_buckets(parameters_, arena_.count(), options);
  DT_CHECK(!buckets_.empty(), "all-reduce: the model has no parameters");
  bucket_of_.assign(parameters_.size(), 0);
  counts_.assign(buckets_.size(), 0);
  for (size_t i = 0; i < parameters_.size(); ++i) {
    size_t bucket = 0;
    while (parameters_[i].range.begin < buckets_[bucket].begin) ++bucket;
    bucket_of_[i] = bucket;
    counts_[bucket] += parameters_[i].trained ? 1 : 0;
  }
}

void Bucketer::begin(bool at_the_end) {
  missing_ = counts_;
  sent_ = 0;
  at_the_end_ = at_the_end;
  send_full();  // buckets without trainable parameters
}

void Bucketer::ready(int parameter) {
  --missing_[bucket_of_[static_cast<size_t>(parameter)]];
  send_full();
}

// Sends all full buckets except the last, which finish() sends.
void Bucketer::send_full() {
  while (!at_the_end_ && sent_ + 1 < buckets_.size() && missing_[sent_] == 0) send(sent_++, {});
}

void Bucketer::send(size_t bucket, std::vector<Tensor> tail) {
  const Range& range = buckets_[bucket];
  tail.insert(tail.begin(), arena_.slice(range.begin, range.end));
  communicator_.all_reduce(tail, concat("bucket ", bucket + 1, " of ", buckets_.size()));
}

void Bucketer::finish(std::vector<Tensor> tail) {
  // Size up to which bucket and tail are packed into one message; not for a 16-bit wire, since the tail stays f32.
  constexpr size_t kTogether = 4 << 20;
  at_the_end_ = false;
  send_full();
  DT_CHECK(sent_ + 1 == buckets_.size() && missing_.back() == 0,
           "gradient buckets: the backward pass has ended and parameters are missing");
  const Range& last = buckets_.back();
  if (communicator_.wire() != DType::f32 || static_cast<size_t>(last.count()) * sizeof(float) > kTogether) {
    send(sent_++, {});
    if (!tail.empty()) communicator_.all_reduce(tail, "statistics", /*exact=*/true);
  } else {
    send(sent_++, std::move(tail));
  }
  communicator_.join();
}

}  // namespace dtrain
