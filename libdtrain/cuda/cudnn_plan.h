// ConvPlans: how cuDNN runs each convolution, chosen once by measurement, kept in memory and in the plan file.
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

// The addresses of a problem's tensors; null where it has none such.
struct ConvOperands {
  void *image = nullptr, *filter = nullptr, *output = nullptr;  // x w y, or their gradients
  // forward_bias: f32 [k]; normalized_dgrad: the images that batch norm is applied to.
  void* extra = nullptr;
  void *sum = nullptr, *sum_of_squares = nullptr;  // forward_statistics, normalized_forward: f32 [k]
  void *scale = nullptr, *shift = nullptr;         // normalized_forward and _wgrad: [c], in x's type
  // normalized_dgrad, f32 [c]: what the batch norm is computed from once more, and the sums over dx and over
  // dx * (x - mean) * inv_std.
  void *mean = nullptr, *inv_std = nullptr, *gamma = nullptr, *beta = nullptr;
  void *dgamma = nullptr, *dbeta = nullptr;
  std::array<void*, 3> terms{};  // f32 [c] each, written too: coefficients that follow from those sums
};

// The first use of a problem chooses its plan: from the plan file, else by running every candidate on the operands that
// are read, with throw-away memory for what is written. That waits for the device, so a step that is being captured
// must not meet a new problem.
class ConvPlans {
 public:
  explicit ConvPlans(const Runtime& runtime);

  // `op` names the caller in messages. Throws where cuDNN has no engine for the problem: Fault::config.
  void run(Context& context, const ConvProblem& problem, const ConvOperands& operands, const char* op);
  // What the plan takes; kUnsupported where there is none. What is written may be null. 0 where nothing is measured:
  // without CudaOptions::autotune, where the choice must not differ from run to run (deterministic), or for want of
  // memory. What the plan file says is taken as it is: an engine is made ready where it is run.
  float milliseconds(Context& context, const ConvProblem& problem, const ConvOperands& operands, const char* op);
  static constexpr float kUnsupported = std::numeric_limits<float>::infinity();
  // A choice between compositions, made by `choose` once and kept as plans are: `name` is one word that tells it from
  // others. False where nothing is measured, and for the rest of a run that `choose` had no memory for.
  bool chosen(Context& context, const std::string& name, const std::function<bool()>& choose);
  // False where nothing is measured: what is faster may differ from run to run, and the last bits with it.
  bool measures() const { return options_.autotune && !options_.deterministic; }
  // What has been kept of a composition, by this process or in the plan file; none where nothing is measured.
  std::optional<SavedPlan> known(Context& context, const std::string& name);
  void keep(Context& context, const std::string& name, const SavedPlan& plan);
  // What a kernel bound by the device's memory takes to move so many bytes: to tell whether a fusion pays.
  float pass_milliseconds(size_t bytes) const { return static_cast<float>(bytes) / bytes_per_millisecond_; }

 private:
  struct Plan {
    std::optional<Descriptor> executable;  // none: no engine takes the problem
    EngineChoice choice;
    float milliseconds = kUnsupported;
    std::string failure;  // why the last candidate that failed did so
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
