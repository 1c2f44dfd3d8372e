// Tape: reverse-mode automatic differentiation of one step. Ops record closures in execution order; backward runs them
// in reverse.
#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dtrain/autograd/op_observer.h"
#include "dtrain/autograd/parameters.h"
#include "dtrain/autograd/var.h"
#include "dtrain/core/context.h"

namespace dtrain {

class PreparedWeights;

// Misuse (Var of another tape, tensor on another device, closure that omits a gradient) throws Error naming the op.
class Tape {
 public:
  // Computes the gradients of an op's inputs that need one, from the gradient of its output.
  using Backward = std::function<void(Tape&, const Tensor& dy)>;
  using Ready = std::function<void(const Parameter&)>;  // called once per parameter, when its gradient is complete

  // `micro_step`: gradient accumulation step; parameter gradients are stored in micro-step 0 and accumulated later.
  // `share`: index of this part of the global batch, over all ranks and micro-steps, for random numbers; default: the
  // micro-step. Throws Error while another thread records on the context.
  explicit Tape(Context& context, Mode mode = Mode::train, int micro_step = 0, int share = -1);
  // Mode::eval with cached weights: ops keep transformed parameters in `prepared`, which later tapes reuse.
  Tape(Context& context, PreparedWeights& prepared) : Tape(context, Mode::eval) { prepared_ = &prepared; }
  ~Tape();
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  Context& context() const { return *context_; }
  bool training() const { return mode_ == Mode::train; }
  PreparedWeights* prepared() const { return prepared_; }
  Var constant(Tensor value) const;  // leaf without gradient: images, labels
  // Leaf whose gradient is kept for grad(): for tests and input gradients. The gradient has the type of the value, or
  // f32 as for a parameter.
  Var variable(Tensor value);
  Var variable(Tensor value, DType gradient);
  // Compute copy of a parameter; its gradient goes to the gradient arena. Frozen parameters are constants.
  Var leaf(Parameter& parameter);

  // Registers `value` as an op's output and, if an input needs a gradient, `backward`, to run once the gradient of the
  // output is complete. Tensors captured by the closure live until it has run.
  Var record(const char* op, Tensor value, std::span<const Var* const> inputs, Backward backward);
  Var record(const char* op, Tensor value, std::initializer_list<const Var*> inputs, Backward backward) {
    return record(op, std::move(value), std::span(inputs.begin(), inputs.size()), std::move(backward));
  }
  void count_flops(double flops) { flops_ = flops; }  // of the next recorded op, for profilers
  // Whether record() would keep the closure: else an op need not save tensors for backward.
  bool wants_grad(std::span<const Var* const> inputs) const;
  bool wants_grad(std::initializer_list<const Var*> inputs) const {
    return wants_grad(std::span(inputs.begin(), inputs.size()));
  }
  // RNG stream of a random op: unique within a step over all shares, equal from step to step.
  uint64_t next_stream() { return static_cast<uint64_t>(share_) << 32 | streams_++; }
  int share() const { return share_; }

  // Assigns ops recorded from now on, and their backward, to a part of the model. For profiling: `watch` is called when
  // work of another part begins.
  void part(const char* name);
  void on_part(std::function<void(const char*)> watch) { watch_ = std::move(watch); }

  // Records `ops` as a conditional node, forward and backward, which a captured step skips unless count [1] f32 is
  // above `above` (see Context::run_or_skip). If skipped, their outputs are undefined, and their contribution to
  // gradients must have been zero. Gradients of tensors that are also used elsewhere must first be written by an op
  // outside, recorded later, since backward runs in reverse.
  void run_or_skip(const Tensor& count, float above, const std::function<void()>& ops);

  // Inside a closure: destination of the gradient of input `x`; nullopt if it needs none.
  std::optional<GradTarget> grad_target(const Var& x);
  // Inside a closure: passes `dx` on as the gradient of `x` (add, view), without a copy if `x` has none yet.
  void pass_grad(const Var& x, const Tensor& dx);

  // Runs the closures in reverse and destroys each after it has run; once per tape. `loss` has one element; its
  // gradient is the loss scale in the context's StepScalars. Zero-fills gradients of `store` that no closure wrote in
  // micro-step 0 and returns the names of these parameters.
  std::vector<std::string> backward(const Var& loss, ParameterStore* store = nullptr);
  void on_ready(Ready ready) { ready_ = std::move(ready); }
  // After backward: gradient of a variable() (undefined if it does not affect the loss) or of a parameter.
  const Tensor& grad(const Var& leaf) const;
  OpObserver& op_observer() { return op_observer_; }  // observer of recorded ops
  [[deprecated("renamed: op_observer")]] OpObserver& op_watch() { return op_observer_; }
  size_t recorded() const { return nodes_.size(); }
  size_t bytes() const { return bytes_; }                 // of inputs and outputs of all ops recorded so far
  const char* current_op() const { return current_op_; }  // recorded last, or running backward: for error messages

 private:
  struct Slot {
    Shape shape;
    DType dtype;
    Tensor grad;
    Parameter* parameter = nullptr;
    int uses = 0;         // closures yet to write it
    int64_t writer = -1;  // node that wrote it last
    bool keep = false;
  };
  struct Node {
    const char *op, *part;
    size_t output;
    std::vector<size_t> inputs;
    Backward backward;
    int64_t skippable, observed;  // index of its Skippable; its profiler number; -1: none
  };
  struct Skippable {  // nodes of one run_or_skip()
    Tensor count;
    float above;
    size_t first_slot;  // of the slots that only they use
  };

  size_t add_slot(const Tensor& value);
  Var var_of(Tensor value, size_t slot) const { return {std::move(value), number_ << 32 | static_cast<int64_t>(slot)}; }
  size_t slot_of(const Var& x, const char* what) const;
  Slot& slot_to_write(const Var& x, const char* what);
  void begin_gradients(ParameterStore* store);
  void run_last_nodes();
  void run(Node& node);
  bool is_used_by_others(const Slot& slot) const;
  std::vector<std::string> fill_unwritten(ParameterStore& store);

  CheckedRef<Context> context_;
  Mode mode_;
  PreparedWeights* prepared_ = nullptr;
  int micro_step_, share_;
  int64_t number_;                                       // unique in the process; part of the tape's Vars
  int64_t running_ = -1;                                 // node whose closure is running; -1: none
  const std::vector<size_t>* running_inputs_ = nullptr;  // its input slots
  bool backward_ = false;                                // backward() has begun
  uint64_t streams_ = 0;
  std::vector<Slot> slots_;
  std::vector<Node> nodes_;
  std::vector<Skippable> skippables_;
  int64_t skippable_ = -1;                  // current run_or_skip() in recording or backward; -1: none
  std::vector<int> parameter_slots_;        // by Parameter::index
  std::vector<const Parameter*> complete_;  // complete but not yet announced to on_ready()
  Ready ready_;
  OpObserver op_observer_;
  std::function<void(const char*)> watch_;
  const char *part_ = "", *current_op_ = "";
  size_t bytes_ = 0;
  double flops_ = 0;  // of the next recorded op
};

}  // namespace dtrain
