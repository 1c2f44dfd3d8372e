// --all_reduce_spec of tf_cnn_benchmarks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dtrain::cli {

// A range of tensor sizes up to `limit` bytes (-1: unlimited), and tf_cnn_benchmarks' algorithm for it.
struct AllReduceRange {
  std::string algorithm;
  int64_t shards = 1, limit = -1;
};
// Parses --all_reduce_spec: alg[#shards][:limit:alg[#shards]]..., with increasing limits such as 1024, 32k or 1M. Empty
// for an empty text. Throws Error saying what was expected.
std::vector<AllReduceRange> parse_all_reduce_spec(const std::string& spec);

}  // namespace dtrain::cli
