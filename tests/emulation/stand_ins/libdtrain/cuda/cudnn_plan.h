// Replaces libdtrain/cuda/cudnn_plan.h: ConvPlans by the CPU kernels. Declines some problems, like the library, so that
// the ops' fallbacks are tested.
#pragma once

#include <array>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <unordered_set>

#include "libdtrain/cuda/conv_problem.h"
#include "libdtrain/cuda/plan_file.h"
#include "libdtrain/cuda/runtime.h"

namespace dtrain::cuda {

struct ConvOperands {
  void *image = nullptr, *filter = nullptr, *output = nullptr;
  void* extra = nullptr;
  void *sum = nullptr, *sum_of_squares = nullptr;
  void *scale = nullptr, *shift = nullptr;
  void *mean = nullptr, *inv_std = nullptr, *gamma = nullptr, *beta = nullptr;
  void *dgamma = nullptr, *dbeta = nullptr;
  std::array<void*, 3> terms{};
};

class ConvPlans {
 public:
  explicit ConvPlans(const Runtime& runtime) : options_(runtime.options()) {}

  void run(Context& context, const ConvProblem& problem, const ConvOperands& operands, const char* op);
  float milliseconds(Context& context, const ConvProblem& problem, const ConvOperands& operands, const char* op);
  static constexpr float kUnsupported = std::numeric_limits<float>::infinity();
  bool chosen(Context& context, const std::string& name, const std::function<bool()>& choose);
  bool measures() const { return options_.autotune && !options_.deterministic; }
  std::optional<SavedPlan> known(Context& context, const std::string& name);
  void keep(Context&, const std::string& name, const SavedPlan& plan) { kept_[name] = plan; }
  float pass_milliseconds(size_t) const { return 0; }

 private:
  const CudaOptions& options_;
  std::unordered_set<ConvProblem> known_;
  PlanBook kept_;
};

}  // namespace dtrain::cuda
