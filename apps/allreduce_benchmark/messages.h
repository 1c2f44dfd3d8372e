// Message sizes: a range, a list, or the gradient buckets of a model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dtrain/distributed/bucketer.h"

namespace dtrain::allreduce_benchmark {

struct Message {
  std::string name;
  int64_t count = 0;  // f32 elements
};

// Parses a size in bytes, "4096", "4K", "25M", "1G" (powers of 1024), a multiple of 4. Throws Error with the expected
// form.
int64_t parse_bytes(const std::string& text);

// From `min` bytes by `factor` up to `max`.
std::vector<Message> range_of_sizes(int64_t min, int64_t max, int64_t factor);
std::vector<Message> list_of_sizes(const std::vector<std::string>& sizes);
// Gradient buckets of a model in backward order, as in training; single parameters if the bucket size is 0.
std::vector<Message> gradients_of(const std::string& model, const std::string& dataset, const BucketOptions& buckets);

}  // namespace dtrain::allreduce_benchmark
