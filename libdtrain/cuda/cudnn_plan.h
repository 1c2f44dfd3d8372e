// ConvPlans: cuDNN execution plans of convolutions, autotuned once, cached in memory and in the plan file.
#pragma once

#include <array>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>

#include "libdtrain/cuda/cudnn_graph.h"
#include "libdtrain/cuda/plan_file.h"
#include "libdtrain/cuda/runtime.h"

namespace dtrain::cuda {

// Device addresses of a problem's tensors; null where unused.
struct ConvOperands {
  void *image = nullptr, *filter = nullptr, *output = nullptr;  // x, w, y or their gradients
  // forward_bias: bias, f32 [k]; normalized_dgrad: input of the batch norm.
  void* extra = nullptr;
  void *sum = nullptr, *sum_of_squares = nullptr;  // forward_statistics, normalized_forward: f32 [k]
  void *scale = nullptr, *shift = nullptr;         // normalized_forward and _wgrad: [c], in x's type
  // normalized_dgrad, f32 [c]: parameters of the batch norm, recomputed in the prologue; dgamma and dbeta receive the
  // sums over dx and over dx * (x - mean) * inv_std.
  void *mean = nullptr, *inv_std = nullptr, *gamma = nullptr, *beta = nullptr;
  void *dgamma = nullptr, *dbeta = nullptr;
  std::array<void*, 3> terms{};  // f32 [c] each, output: coefficients of the batch norm's backward
};

// The first use of a problem selects its plan: from the plan file, else by autotuning, which runs every candidate on
// the live inputs and scratch outputs. Autotuning waits for the device: a step that is being captured must not meet a
// new problem.
class ConvPlans {
 public:
  explicit ConvPlans(const Runtime& runtime);

  // `op` names the caller in messages. Throws Error(Fault::config) where cuDNN has no engine for the problem.
  void run(Context& context, const ConvProblem& problem, const ConvOperands& operands, const char* op);
  // Measured time of the plan; kUnsupported where there is none. Outputs may be null. Returns 0 where nothing is
  // measured: without CudaOptions::autotune, with `deterministic`, or if memory is short. A time from the plan file is
  // returned without building the plan.
  float milliseconds(Context& context, const ConvProblem& problem, const ConvOperands& operands, const char* op);
  static constexpr float kUnsupported = std::numeric_limits<float>::infinity();
  // Choice between two compositions of kernels, made by `choose` once and kept like a plan under `name`, one unique
  // word. False where nothing is measured, and for the rest of a run in which `choose` ran out of memory.
  bool chosen(Context& context, const std::string& name, const std::function<bool()>& choose);
  // False without autotuning. Autotuning may select other kernels from run to run, and so change the last bits.
  bool measures() const { return options_.autotune && !options_.deterministic; }
  // Stored choice of a composition, of this process or from the plan file; nullopt where nothing is measured.
  std::optional<SavedPlan> known(Context& context, const std::string& name);
  void keep(Context& context, const std::string& name, const SavedPlan& plan);
  // Time of a memory-bound kernel that moves `bytes`: an estimate of what a fusion saves.
  float pass_milliseconds(size_t bytes) const { return static_cast<float>(bytes) / bytes_per_millisecond_; }

 private:
  struct Plan {
    std::optional<Descriptor> executable;  // none: no engine supports the problem
    EngineChoice choice;
    float milliseconds = kUnsupported;
    std::string failure;  // of the last candidate that failed
  };

  const Plan& find(Context& context, const ConvProblem& problem, const ConvOperands& operands, const char* op);
  std::optional<Plan> saved(Context& context, const ConvProblem& problem, const Descriptor& graph);
  Plan choose(Context& context, const ConvProblem& problem, const Descriptor& graph, const ConvOperands& operands);
  void load(Context& context);
  void save(Context& context);
  void execute(Context& context, const Descriptor& executable, const ConvOperands& operands);

  const Runtime& runtime_;
  const CudaOptions& options_;
  cudaStream_t stream_ = nullptr;  // the handle's
  std::shared_ptr<cudnnContext> handle_;
  Target target_;
  std::string identity_;
  float bytes_per_millisecond_;
  std::unordered_map<ConvProblem, Plan> plans_;
  PlanBook book_;    // from the plan file
  PlanBook chosen_;  // by this process
  std::map<std::string, bool> compositions_;
  bool loaded_ = false;
  bool save_ = true;
};

}  // namespace dtrain::cuda
