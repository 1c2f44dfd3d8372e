#include "libdtrain/cuda/cudnn_plan.h"

#include <algorithm>
#include <utility>

#include "libdtrain/cuda/cudnn_library.h"
#include "libdtrain/cuda/graph_timing.h"

namespace dtrain::cuda {
namespace {

// Limit of an engine's workspace.
constexpr int64_t kMostWorkspace = int64_t{2} << 30;
// Engines compiled at run time (NVRTC) take about a second each, at every start. Plain problems use them as a last
// resort; fused ones try a few, and none without autotuning.
constexpr int kMostCompiled = 2;
// A candidate this much slower than the best in its first run is not timed further.
constexpr float kGiveUpRatio = 1.3f;

// Plain problems must run, on any engine; all others are optional fusions.
bool is_plain(const ConvProblem& problem) {
  return problem.kind == ConvKind::forward || problem.kind == ConvKind::dgrad || problem.kind == ConvKind::wgrad;
}

// Distinct candidates of a problem, in heuristic order; for plain problems those compiled at run time come last.
std::vector<Descriptor> candidates(const ConvProblem& problem, const Descriptor& graph, const Target& target,
                                   bool all) {
  std::vector<cudnnBackendHeurMode_t> modes{CUDNN_HEUR_MODE_A};
  if (all) modes.insert(modes.end(), {CUDNN_HEUR_MODE_B, CUDNN_HEUR_MODE_INSTANT});
  modes.push_back(CUDNN_HEUR_MODE_FALLBACK);
  // Engines of the other fusions are precompiled.
  int compilations = problem.kind == ConvKind::forward_bias && all ? kMostCompiled : 0;
  std::vector<Descriptor> found, last_resort;
  std::vector<EngineChoice> known;
  for (const cudnnBackendHeurMode_t mode : modes)
    for (const Descriptor& config : engine_configs(graph, mode, target)) {
      const EngineChoice choice = choice_of(config);
      if (!allowed(problem, config) || std::find(known.begin(), known.end(), choice) != known.end()) continue;
      known.push_back(choice);
      if (!compiled_at_run_time(config))
        found.push_back(config);
      else if (is_plain(problem))
        last_resort.push_back(config);
      else if (compilations-- > 0)
        found.push_back(config);
    }
  found.insert(found.end(), last_resort.begin(), last_resort.end());
  return found;
}

// `operands` with scratch memory in place of the outputs.
struct ScratchOutputs {
  ScratchOutputs(Context& context, const ConvProblem& o, const ConvOperands& live) : operands(live) {
    const auto replace = [&](void*& address, const TensorLayout& layout, DType dtype) {
      const auto& e = layout.extents;
      memory.push_back(context.empty({e[0], e[1], e[2], e[3]}, dtype));
      context.fill_zero(memory.back());
      address = memory.back().raw();
    };
    const auto output = static_cast<DType>(o.output_dtype);
    const auto replace_channels = [&](void*& address, int64_t count) {
      if (address) replace(address, channels_last(1, count, 1, 1), DType::f32);
    };
    if (o.kind == ConvKind::wgrad || o.kind == ConvKind::normalized_wgrad)
      replace(operands.filter, filter_layout(o), output);
    else if (o.kind == ConvKind::dgrad || o.kind == ConvKind::dgrad_add || o.kind == ConvKind::normalized_dgrad)
      replace(operands.image, image_layout(o), output);
    else
      replace(operands.output, output_layout(o), output);
    for (void** address : {&operands.sum, &operands.sum_of_squares}) replace_channels(*address, o.k);
    for (void** address : {&operands.dgamma, &operands.dbeta}) replace_channels(*address, o.c);
    for (void*& address : operands.terms) replace_channels(address, o.c);
  }

  ConvOperands operands;
  std::vector<Tensor> memory;
};

std::string identity_of(const Runtime& runtime) {
  int driver = 0;
  DT_CUDA(cudaDriverGetVersion(&driver));
  return concat(runtime.properties().name, ", ", runtime.multiprocessors(), " multiprocessors, driver ", driver,
                ", cuDNN ", cudnn().version());
}

// Attainable memory bandwidth in bytes per millisecond: 88 % of the peak at double data rate. A lower bound applies
// where the device does not report its clock.
float memory_rate(int device) {
  int kilohertz = 0, bits = 0;
  DT_CUDA(cudaDeviceGetAttribute(&kilohertz, cudaDevAttrMemoryClockRate, device));
  DT_CUDA(cudaDeviceGetAttribute(&bits, cudaDevAttrGlobalMemoryBusWidth, device));
  return std::max(1e8f, 0.88f * 2 * static_cast<float>(kilohertz) * static_cast<float>(bits / 8));
}

}  // namespace

ConvPlans::ConvPlans(const Runtime& runtime)
    : runtime_(runtime),
      options_(runtime.options()),
      identity_(identity_of(runtime)),
      bytes_per_millisecond_(memory_rate(options_.device)) {
  cudnnHandle_t handle = nullptr;
  check(cudnn().create(&handle), "cudnnCreate");
  handle_ = std::shared_ptr<cudnnContext>(handle, [](cudnnHandle_t made) { static_cast<void>(cudnn().destroy(made)); });
  target_.handle = handle;
}

void ConvPlans::run(Context& context, const ConvProblem& problem, const ConvOperands& operands, const char* op) {
  const Plan& plan = find(context, problem, operands, op);
  DT_CHECK(plan.executable, op, ": cuDNN has no engine for ", name_of(problem),
           plan.failure.empty() ? "" : " that runs: ", plan.failure);
  execute(context, *plan.executable, operands);
}

// A plan timed in an earlier run is not built to be compared, and the slower one is never run.
float ConvPlans::milliseconds(Context& context, const ConvProblem& problem, const ConvOperands& operands,
                              const char* op) {
  if (const auto it = plans_.find(problem); it != plans_.end()) return it->second.milliseconds;
  load(context);
  if (const auto entry = book_.find(name_of(problem)); entry != book_.end()) {
    if (!entry->second.supported) return kUnsupported;
    if (measures() && entry->second.milliseconds > 0) return entry->second.milliseconds;
  }
  return find(context, problem, operands, op).milliseconds;
}

const ConvPlans::Plan& ConvPlans::find(Context& context, const ConvProblem& problem, const ConvOperands& operands,
                                       const char* op) {
  if (const auto it = plans_.find(problem); it != plans_.end()) return it->second;
  DT_CHECK(!context.capturing(), op, ": no plan yet for ", name_of(problem),
           "; autotuning is not possible while a step is captured; run the step once before");
  load(context);
  Plan plan;
  try {
    const Descriptor graph = conv_graph(problem, target_);
    if (auto known = saved(context, problem, graph)) return plans_.emplace(problem, *known).first->second;
    plan = choose(context, problem, graph, operands);
  } catch (const Error& error) {
    throw Error(error.fault(), concat(op, ": ", name_of(problem), ": ", error.what()));
  }
  const bool supported = plan.executable.has_value();
  chosen_[name_of(problem)] = {supported, plan.choice, supported ? plan.milliseconds : 0};
  save(context);
  return plans_.emplace(problem, plan).first->second;
}

bool ConvPlans::chosen(Context& context, const std::string& name, const std::function<bool()>& choose) {
  if (!measures()) return false;
  if (const auto it = compositions_.find(name); it != compositions_.end()) return it->second;
  DT_CHECK(!context.capturing(), name,
           ": not autotuned yet, which a captured step does not allow; run the step once before");
  load(context);
  if (const auto it = book_.find(name); it != book_.end()) return compositions_[name] = it->second.supported;
  try {
    compositions_[name] = choose();
  } catch (const Error& error) {  // memory may suffice for one of the two, not for both
    if (error.fault() != Fault::resource) throw;
    return compositions_[name] = false;
  }
  keep(context, name, {compositions_[name], {}, 0});
  return compositions_[name];
}

std::optional<SavedPlan> ConvPlans::known(Context& context, const std::string& name) {
  if (!measures()) return std::nullopt;
  load(context);
  for (const PlanBook* book : {&chosen_, &book_})
    if (const auto it = book->find(name); it != book->end()) return it->second;
  return std::nullopt;
}

void ConvPlans::keep(Context& context, const std::string& name, const SavedPlan& plan) {
  chosen_[name] = plan;
  save(context);
}

std::optional<ConvPlans::Plan> ConvPlans::saved(Context& context, const ConvProblem& problem, const Descriptor& graph) {
  const auto entry = book_.find(name_of(problem));
  if (entry == book_.end()) return std::nullopt;
  if (!entry->second.supported) return Plan{};
  // Selected without timing: nothing to compare with.
  if (measures() && entry->second.milliseconds == 0) return std::nullopt;
  try {
    const Descriptor config = config_of(graph, entry->second.choice, target_);
    const bool unmeasured = !measures() && !is_plain(problem) && compiled_at_run_time(config);
    if (unmeasured) return Plan{};
    const auto executable = allowed(problem, config) ? build_plan(config, target_) : std::nullopt;
    if (executable && workspace_of(*executable) <= kMostWorkspace)
      return Plan{executable, entry->second.choice, measures() ? entry->second.milliseconds : 0, {}};
  } catch (const Error&) {
    // An engine that no longer exists counts as a plan that cannot be built.
  }
  context.notices().push_back(
      concat("the plan file ", options_.plan_file, " has an unusable plan for ", entry->first, ": autotuned again"));
  return std::nullopt;
}

ConvPlans::Plan ConvPlans::choose(Context& context, const ConvProblem& problem, const Descriptor& graph,
                                  const ConvOperands& operands) {
  Plan best;
  std::optional<ScratchOutputs> scratch;
  for (const Descriptor& config : candidates(problem, graph, target_, measures())) {
    if (best.executable && is_plain(problem) && compiled_at_run_time(config)) break;
    const auto executable = build_plan(config, target_);
    if (!executable || workspace_of(*executable) > kMostWorkspace) continue;
    if (!measures()) return {executable, choice_of(config), 0, {}};
    try {
      if (!scratch) scratch.emplace(context, problem, operands);
    } catch (const Error& error) {  // memory may not suffice for a second set of outputs
      if (error.fault() != Fault::resource) throw;
      return {executable, choice_of(config), 0, {}};
    }
    try {
      const float time = graph_milliseconds(
          context, [&] { execute(context, *executable, scratch->operands); }, kGiveUpRatio * best.milliseconds);
      if (time < best.milliseconds) best = {executable, choice_of(config), time, {}};
    } catch (const Error& error) {  // declined at launch, or out of memory for the workspace
      if (!best.executable) best.failure = error.what();
    }
  }
  return best;
}

void ConvPlans::execute(Context& context, const Descriptor& executable, const ConvOperands& operands) {
  const std::pair<TensorId, void*> all[] = {
      {TensorId::image, operands.image},      {TensorId::filter, operands.filter},
      {TensorId::output, operands.output},    {TensorId::extra, operands.extra},
      {TensorId::sum, operands.sum},          {TensorId::sum_of_squares, operands.sum_of_squares},
      {TensorId::scale, operands.scale},      {TensorId::shift, operands.shift},
      {TensorId::mean, operands.mean},        {TensorId::inv_std, operands.inv_std},
      {TensorId::gamma, operands.gamma},      {TensorId::beta, operands.beta},
      {TensorId::dgamma, operands.dgamma},    {TensorId::dbeta, operands.dbeta},
      {TensorId::term_dy, operands.terms[0]}, {TensorId::term_x, operands.terms[1]},
      {TensorId::term, operands.terms[2]}};
  std::vector<int64_t> ids;
  std::vector<void*> addresses;
  for (const auto& [id, address] : all)
    if (address) {
      ids.push_back(static_cast<int64_t>(id));
      addresses.push_back(address);
    }
  const Tensor workspace = context.empty({std::max<int64_t>(workspace_of(executable), 1)}, DType::u8);
  Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, std::span<const int64_t>(ids))
      .set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, std::span<void* const>(addresses))
      .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, workspace.raw())
      .finalize();
  if (const cudaStream_t stream = runtime_.compute(); stream != stream_) {
    check(cudnn().set_stream(handle_.get(), stream), "cudnnSetStream");
    stream_ = stream;
  }
  check(cudnn().execute(handle_.get(), executable.raw(), pack.raw()), "cudnnBackendExecute");
}

void ConvPlans::load(Context& context) {
  if (std::exchange(loaded_, true)) return;
  if (options_.plan_file.empty()) return;
  try {
    book_ = read_plans(options_.plan_file, identity_);
  } catch (const Error& error) {
    context.notices().push_back(
        concat("the plan file ", options_.plan_file, " is ignored and will be replaced: ", error.what()));
  }
}

void ConvPlans::save(Context& context) {
  if (options_.plan_file.empty() || !save_) return;
  try {
    // Includes plans that other processes have added since.
    book_ = add_plans(chosen_, options_.plan_file, identity_);
  } catch (const Error& error) {  // the next start measures again
    save_ = false;
    context.notices().push_back(concat("the plan file cannot be written: ", error.what()));
  }
}

ConvPlans& Runtime::conv_plans() {
  if (!conv_plans_) conv_plans_ = std::make_shared<ConvPlans>(*this);
  return *conv_plans_;
}

}  // namespace dtrain::cuda
