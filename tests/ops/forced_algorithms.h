// Contexts that are forced to one algorithm of inference.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "dtrain/core/context.h"
#include "libdtrain/ops/conv2d_algorithms.h"
#include "tests/cpu/instruction_sets.h"
#include "tests/testing.h"

namespace dtrain {

struct ForcedContext {
  CpuIsa isa;
  std::string algorithm;
  std::unique_ptr<Context> context;
};

// One for each instruction set and each algorithm of inference in `dtype` that computes the convolution.
inline std::vector<ForcedContext> forced_contexts(const Shape& x, const Shape& w, const Conv2dOptions& options,
                                                  DType dtype) {
  std::vector<ForcedContext> all;
  for (const CpuIsa isa : instruction_sets())
    for (const Conv2dAlgorithm& one : conv2d_algorithms(*context_of(isa), "inference", x, w, options, dtype)) {
      auto context = make_cpu_context({.threads = 2, .isa = isa, .conv_algorithm = one.name});
      for (const Conv2dAlgorithm& row : conv2d_algorithms(*context, "inference", x, w, options, dtype))
        if (row.taken && row.name == one.name) all.push_back({isa, one.name, std::move(context)});
    }
  return all;
}

// Fails for algorithms of the list, which the set `scalar` has in full, that are not in `names`.
inline void expect_all_algorithms(const std::set<std::string>& names, const Shape& x, const Shape& w, DType dtype) {
  for (const Conv2dAlgorithm& one : conv2d_algorithms(*context_of(CpuIsa::scalar), "inference", x, w, {}, dtype))
    EXPECT_TRUE(names.contains(one.name)) << dtype << " " << one.name << " ran on no shape";
}

}  // namespace dtrain
