// Tape: the backward closures and gradient slots of one step. Ops record in execution order; backward runs in reverse.
#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "libdtrain/autograd/op_watch.h"
#include "libdtrain/autograd/parameters.h"
#include "libdtrain/autograd/var.h"
#include "libdtrain/core/context.h"

namespace dtrain {

class PreparedWeights;

// What does not go together (a Var of another tape, a tensor of another device, a closure that leaves a gradient out)
// throws Error naming the op.
class Tape {
 public:
  // Writes the gradient of each of an op's inputs that wants one, given that of its output.
  using Backward = std::function<void(Tape&, const Tensor& dy)>;
  using Ready = std::function<void(const Parameter&)>;  // called once per parameter, when its gradient is complete

  // `micro_step`: parameter gradients are stored in micro-step 0 and added to in later ones. `share`: which part of the
  // global batch this is, over all ranks and micro-steps, by default the micro-step: what is random differs between
  // them. Throws Error where another thread records on the context at the time.
  explicit Tape(Context& context, Mode mode = Mode::train, int micro_step = 0, int share = -1);
  // In Mode::eval: ops keep in `prepared` what they make of parameters, and are faster from the second tape on.
  Tape(Context& context, PreparedWeights& prepared) : Tape(context, Mode::eval) { prepared_ = &prepared; }
  ~Tape();
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  Context& context() const { return *context_; }
  bool training() const { return mode_ == Mode::train; }
  PreparedWeights* prepared() const { return prepared_; }
  Var constant(Tensor value) const;  // a leaf without gradient: images, labels
  // A leaf whose gradient is kept for `grad` after backward: for tests and for gradients of inputs. The gradient has
  // the type of the value or, as a parameter's, f32.
  Var variable(Tensor value);
  Var variable(Tensor value, DType gradient);
  // A parameter's compute copy; its gradient is written to its range of the gradient arena. A frozen one is a constant.
  Var leaf(Parameter& parameter);

  // Registers `value` as an op's output and, if any input needs a gradient, `backward` to be run once the gradient of
  // the output is complete. The closure captures exactly the tensors that it needs: they live until it has run.
  Var record(const char* op, Tensor value, std::span<const Var* const> inputs, Backward backward);
  Var record(const char* op, Tensor value, std::initializer_list<const Var*> inputs, Backward backward) {
    return record(op, std::move(value), std::span(inputs.begin(), inputs.size()), std::move(backward));
  }
  void count_flops(double flops) { flops_ = flops; }  // of the op that is recorded next, for profilers
  // True where `record` would keep the closure: an op that need not save anything can ask first.
  bool wants_grad(std::span<const Var* const> inputs) const;
  bool wants_grad(std::initializer_list<const Var*> inputs) const {
    return wants_grad(std::span(inputs.begin(), inputs.size()));
  }
  // A number, different for each call within a step (its other shares included) and equal from step to step: the RNG
  // stream of an op with randomness.
  uint64_t next_stream() { return static_cast<uint64_t>(share_) << 32 | streams_++; }
  int share() const { return share_; }

  // What is recorded from now on belongs to this part of the model, and so does its backward work. For measurements:
  // `watch` hears the name where work of another part begins.
  void part(const char* name);
  void on_part(std::function<void(const char*)> watch) { watch_ = std::move(watch); }

  // Records `ops` as work that a captured step may leave out, forward and backward, wherever count [1] f32 is not above
  // `above` (see Context::run_or_skip). Then what they made has undefined values, and what they would have added to
  // gradients must have been zero. So the gradient of what others use too has to be stored by others: by an op that is
  // recorded later, since backward goes in reverse.
  void run_or_skip(const Tensor& count, float above, const std::function<void()>& ops);

  // Inside a closure: where to write the gradient of input `x`; nothing where it is not wanted.
  std::optional<GradTarget> grad_target(const Var& x);
  // Inside a closure: the gradient of `x` is `dx` itself (an add, a view): no copy where `x` has none yet.
  void pass_grad(const Var& x, const Tensor& dx);

  // Runs the closures in reverse, each destroyed as soon as it has run, and so once in the life of a tape. `loss` holds
  // one element; its gradient is the loss scale of the context's StepScalars. Parameters of `store` that no closure
  // wrote are zero-filled in micro-step 0; returns their names.
  std::vector<std::string> backward(const Var& loss, ParameterStore* store = nullptr);
  void on_ready(Ready ready) { ready_ = std::move(ready); }
  // After backward: the gradient of a `variable` (undefined where nothing led to the loss) or of a parameter.
  const Tensor& grad(const Var& leaf) const;
  OpWatch& op_watch() { return op_watch_; }  // who is shown ops as they are recorded
  size_t recorded() const { return nodes_.size(); }
  size_t bytes() const { return bytes_; }                 // of the inputs and outputs of all ops recorded so far
  const char* current_op() const { return current_op_; }  // being run backward or recorded last: for errors

 private:
  struct Slot {
    Shape shape;
    DType dtype;
    Tensor grad;
    Parameter* parameter = nullptr;
    int uses = 0;         // closures that are still to write it
    int64_t writer = -1;  // the node that wrote it last
    bool keep = false;
  };
  struct Node {
    const char *op, *part;
    size_t output;
    std::vector<size_t> inputs;
    Backward backward;
    int64_t skippable, observed;  // the Skippable that it is of, its number for the profiler; -1: none
  };
  struct Skippable {  // nodes that are run together or not at all
    Tensor count;
    float above;
    size_t first_slot;  // of those that only they use
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
  int64_t number_;                                       // this tape's number in the process: its Vars carry it
  int64_t running_ = -1;                                 // the node whose closure is running; -1: none
  const std::vector<size_t>* running_inputs_ = nullptr;  // the slots of its inputs
  bool backward_ = false;                                // backward() has begun
  uint64_t streams_ = 0;
  std::vector<Slot> slots_;
  std::vector<Node> nodes_;
  std::vector<Skippable> skippables_;
  int64_t skippable_ = -1;                  // that ops are recorded for or closures run of; -1: none
  std::vector<int> parameter_slots_;        // by Parameter::index
  std::vector<const Parameter*> complete_;  // and not announced
  Ready ready_;
  OpWatch op_watch_;
  std::function<void(const char*)> watch_;
  const char *part_ = "", *current_op_ = "";
  size_t bytes_ = 0;
  double flops_ = 0;  // of the op that is recorded next
};

}  // namespace dtrain
