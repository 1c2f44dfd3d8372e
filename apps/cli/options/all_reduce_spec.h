// --all_reduce_spec of tf_cnn_benchmarks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dtrain::cli {

// A range of sizes of tensors, up to `limit` bytes (-1: and all above), and how tf_cnn_benchmarks would sum them.
struct AllReduceRange {
  std::string algorithm;
  int64_t shards = 1, limit = -1;
};
// --all_reduce_spec by its grammar: alg[#shards][:limit:alg[#shards]]..., limits growing, as 1024, 32k or 1M. Throws
// Error that names what was expected. Empty for an empty one.
std::vector<AllReduceRange> parse_all_reduce_spec(const std::string& spec);

}  // namespace dtrain::cli
