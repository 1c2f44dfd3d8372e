// What is summed: a range of sizes, a list of them, or the gradients of a model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libdtrain/distributed/bucketer.h"

namespace dtrain::allreduce_benchmark {

struct Message {
  std::string name;
  int64_t count = 0;  // f32 elements
};

// "4096", "4K", "25M", "1G", of 1024 each, in bytes: a multiple of 4. Throws Error with what was expected.
int64_t parse_bytes(const std::string& text);

// From `min` bytes by `factor` up to `max`.
std::vector<Message> range_of_sizes(int64_t min, int64_t max, int64_t factor);
std::vector<Message> list_of_sizes(const std::vector<std::string>& sizes);
// The gradients of a model in the order in which a backward pass makes them, in the buckets in which training sends
// them; each alone where buckets have 0 bytes.
std::vector<Message> gradients_of(const std::string& model, const std::string& dataset, const BucketOptions& buckets);

}  // namespace dtrain::allreduce_benchmark
