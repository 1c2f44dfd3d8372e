// In place of libdtrain/cuda/cudnn_plan.h: ConvPlans by the CPU arm. As a library does, it knows no way to run some
// problems, so that the ops' ways around that run too.
#pragma once

#include <limits>
#include <unordered_set>

#include "libdtrain/cuda/conv_problem.h"
#include "libdtrain/cuda/runtime.h"

namespace dtrain::cuda {

struct ConvOperands {
  void *image = nullptr, *filter = nullptr, *output = nullptr;
  void* extra = nullptr;
  void *sum = nullptr, *sum_of_squares = nullptr;
};

class ConvPlans {
 public:
  void run(Context& context, const ConvProblem& problem, const ConvOperands& operands, const char* op);
  float milliseconds(Context& context, const ConvProblem& problem, const ConvOperands& operands, const char* op);
  static constexpr float kUnsupported = std::numeric_limits<float>::infinity();
  float pass_milliseconds(size_t) const { return 0; }

 private:
  std::unordered_set<ConvProblem> known_;
};

}  // namespace dtrain::cuda
