#include "dtrain/autograd/tape.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "dtrain/core/profiler.h"
#include "dtrain/ops/pointwise.h"
#include "libdtrain/core/recording_thread.h"

namespace dtrain {
namespace {

// Unique number of a tape in the process. Results do not depend on it.
int64_t next_tape() {
  static std::atomic<uint32_t> tapes = 0;
  return tapes++ & 0x7fffffff;
}

// Profiler number of a recorded op; -1: none.
int64_t observe(const Context& context, const char* op, const Tensor& value, std::span<const Var* const> inputs,
                double flops) {
  if (context.profiler() == nullptr) return -1;
  std::vector<Tensor> tensors;
  for (const Var* input : inputs) tensors.push_back(input->value);
  return context.profiler()->end_forward({op, tensors, value, flops});
}

bool holds(const ParameterStore& store, const Parameter& parameter) {
  const auto index = static_cast<size_t>(parameter.index);
  return index < store.parameters().size() && &store.parameters()[index] == &parameter;
}

}  // namespace

Tape::Tape(Context& context, Mode mode, int micro_step, int share)
    : context_(context, "a Tape is used after its Context has been destroyed; expected one that outlives it"),
      mode_(mode),
      micro_step_(micro_step),
      share_(share < 0 ? micro_step : share),
      number_(next_tape()) {
  if (training() || !context_->is_cpu()) context_->recording_thread().enter(context_->device());
}

Tape::~Tape() {
  if (context_.expired()) return;
  if (training() || !context_->is_cpu()) context_->recording_thread().leave();
}

size_t Tape::add_slot(const Tensor& value) {
  DT_CHECK(!backward_, current_op_, ": recorded after backward() began");
  slots_.push_back({value.shape(), value.dtype(), {}, nullptr, 0, -1, false});
  return slots_.size() - 1;
}

size_t Tape::slot_of(const Var& x, const char* what) const {
  DT_CHECK(x.slot >> 32 == number_, what, ": a Var of another tape; a tape takes what it has made itself, and tensors");
  return static_cast<size_t>(x.slot & 0xffffffff);
}

Var Tape::constant(Tensor value) const {
  if (value) context_->require(value, "constant");
  if (Profiler* const profiler = context_->profiler()) profiler->between_ops();
  return {std::move(value), -1};
}

Var Tape::variable(Tensor value) {
  const DType dtype = value.dtype();
  return variable(std::move(value), dtype);
}

Var Tape::variable(Tensor value, DType gradient) {
  context_->require(value, "variable");
  if (!training()) return constant(std::move(value));
  const size_t slot = add_slot(value);
  slots_[slot].keep = true;
  slots_[slot].dtype = gradient;
  return var_of(std::move(value), slot);
}

Var Tape::leaf(Parameter& parameter) {
  DT_CHECK(parameter.compute.defined(), "parameter ", parameter.name, " used before ParameterStore::allocate()");
  context_->require(parameter.compute, parameter.name.c_str());
  if (Profiler* const profiler = context_->profiler()) {
    profiler->name_parameter(parameter.compute, parameter.name);
    profiler->between_ops();
  }
  if (!training() || parameter.options().frozen) return constant(parameter.compute);
  DT_CHECK(parameter.grad.defined(), "parameter ", parameter.name,
           " is trainable, but the store was allocated without gradients; use Mode::eval");
  // A weight used several times has one slot; its gradient is ready after its last use.
  const size_t index = static_cast<size_t>(parameter.index);
  if (index >= parameter_slots_.size()) parameter_slots_.resize(index + 1, -1);
  int& slot = parameter_slots_[index];
  if (slot < 0) {
    slot = static_cast<int>(add_slot(parameter.grad));  // in f32 and without padding, like the master copy
    slots_[static_cast<size_t>(slot)].parameter = &parameter;
  }
  DT_CHECK(slots_[static_cast<size_t>(slot)].parameter == &parameter, "parameter ", parameter.name,
           ": a tape takes the parameters of one store only");
  return var_of(parameter.compute, static_cast<size_t>(slot));
}

bool Tape::wants_grad(std::span<const Var* const> inputs) const {
  if (!training()) return false;
  for (const Var* input : inputs)
    if (input->needs_grad()) return true;
  return false;
}

Var Tape::record(const char* op, Tensor value, std::span<const Var* const> inputs, Backward backward) {
  current_op_ = op;
  for (const Var* input : inputs) {
    DT_CHECK(input != nullptr, op, ": a null input; one that is left out is a Var{}");
    if (input->value) context_->require(input->value, op);
    if (input->needs_grad()) slot_of(*input, op);
  }
  op_observer_.tell(op, value, inputs);
  const int64_t observed = observe(*context_, op, value, inputs, std::exchange(flops_, 0));
  if (!wants_grad(inputs)) return constant(std::move(value));
  DT_CHECK(backward, op, ": recorded without a closure, but an input needs a gradient");
  Node node{op, part_, add_slot(value), {}, std::move(backward), skippable_, observed};
  bytes_ += value.bytes();
  for (const Var* input : inputs) {
    if (input->value) bytes_ += input->value.bytes();
    if (!input->needs_grad()) continue;
    const size_t slot = slot_of(*input, op);
    node.inputs.push_back(slot);
    ++slots_[slot].uses;
  }
  Var output = var_of(std::move(value), node.output);
  nodes_.push_back(std::move(node));
  return output;
}

void Tape::run_or_skip(const Tensor& count, float above, const std::function<void()>& ops) {
  DT_CHECK(skippable_ < 0, "run_or_skip: nested calls are not supported");
  skippable_ = static_cast<int64_t>(skippables_.size());
  skippables_.push_back({count, above, slots_.size()});
  context_->run_or_skip(count, above, ops);
  skippable_ = -1;
}

const Tensor& Tape::grad(const Var& leaf) const {
  DT_CHECK(leaf.needs_grad(), "grad: a constant has no gradient");
  const Slot& slot = slots_[slot_of(leaf, "grad")];
  DT_CHECK(backward_, "grad: backward() has not run");
  DT_CHECK(slot.parameter || slot.keep, "grad: the gradient of an op's output is not kept; that of a variable() is");
  return slot.parameter ? slot.parameter->grad : slot.grad;
}

Tape::Slot& Tape::slot_to_write(const Var& x, const char* what) {
  DT_CHECK(running_ >= 0, what, ": called outside a closure of backward()");
  const size_t number = slot_of(x, what);
  DT_CHECK(std::ranges::find(*running_inputs_, number) != running_inputs_->end(), current_op_,
           ": its closure writes the gradient of a Var that is not among the inputs that it was recorded with: it "
           "would stay without gradient if no other input needs one");
  Slot& slot = slots_[number];
  const bool stored = slot.parameter ? slot.parameter->written || micro_step_ > 0 : slot.grad.defined();
  DT_CHECK(stored || !is_used_by_others(slot), current_op_,
           ": in run_or_skip, but first to write the gradient of an input of shape ", slot.shape,
           " that is used outside of it");
  slot.writer = running_;
  return slot;
}

// Whether nodes outside of the running conditional node use the slot.
bool Tape::is_used_by_others(const Slot& slot) const {
  if (skippable_ < 0) return false;
  return slot.parameter || slot.keep ||
         static_cast<size_t>(&slot - slots_.data()) < skippables_[static_cast<size_t>(skippable_)].first_slot;
}

std::optional<GradTarget> Tape::grad_target(const Var& x) {
  if (!x.needs_grad()) return std::nullopt;
  Slot& slot = slot_to_write(x, "grad_target");
  if (Parameter* parameter = slot.parameter) {
    const bool add = parameter->written || micro_step_ > 0;
    parameter->written = true;
    return GradTarget{parameter->grad, add};
  }
  if (!slot.grad) {
    slot.grad = context_->empty(slot.shape, slot.dtype);
    return GradTarget{slot.grad, false};
  }
  // An alias passed on by another op: accumulating in place would change what that op reads.
  if (!slot.grad.unique()) {
    DT_CHECK(!is_used_by_others(slot), current_op_,
             ": in run_or_skip, but moves a gradient that is used outside of it");
    Tensor own = context_->empty(slot.shape, slot.dtype);
    context_->copy(slot.grad, own);
    slot.grad = own;
  }
  return GradTarget{slot.grad, true};
}

void Tape::pass_grad(const Var& x, const Tensor& dx) {
  if (!x.needs_grad()) return;
  Slot& slot = slot_to_write(x, "pass_grad");
  if (!slot.parameter && !slot.grad) {
    slot.grad = dx.view(slot.shape);
    return;
  }
  const GradTarget target = *grad_target(x);
  if (target.add)
    accumulate(*context_, dx.view(slot.shape), target.dx);
  else
    context_->copy(dx, target.dx);
}

// Resets the written flags and the gradient slots of parameters.
void Tape::begin_gradients(ParameterStore* store) {
  if (store)
    for (Parameter& parameter : store->parameters()) parameter.written = false;
  for (const int slot : parameter_slots_) {
    if (slot < 0) continue;
    Parameter& parameter = *slots_[static_cast<size_t>(slot)].parameter;
    DT_CHECK(!store || holds(*store, parameter), "backward: parameter ", parameter.name, " is not of this store");
    parameter.written = false;
  }
}

void Tape::part(const char* name) {
  if (watch_ && name != part_) watch_(name);
  part_ = name;
}

void Tape::run(Node& node) {
  current_op_ = node.op;
  part(node.part);
  // No consumer wrote a gradient: this output does not affect the loss.
  if (const Tensor dy = std::exchange(slots_[node.output].grad, {})) {
    running_ = static_cast<int64_t>(nodes_.size());
    running_inputs_ = &node.inputs;
    Profiler* const profiler = context_->profiler();
    if (profiler) {
      const auto large = [&](size_t slot) { return slots_[slot].shape.rank() > 1; };
      profiler->begin_backward(node.op, node.observed, static_cast<int>(std::ranges::count_if(node.inputs, large)));
    }
    node.backward(*this, dy);
    if (profiler) profiler->end();
    for (const size_t input : node.inputs)
      DT_CHECK(slots_[input].writer == running_, node.op, ": its closure wrote no gradient of an input of shape ",
               slots_[input].shape, " that needs one");
    running_ = -1;
    running_inputs_ = nullptr;
  }
  node.backward = nullptr;
  for (const size_t input : node.inputs) {
    Slot& slot = slots_[input];
    if (--slot.uses == 0 && slot.parameter && slot.parameter->written) complete_.push_back(slot.parameter);
  }
}

// Runs the last node, or all nodes of a conditional node.
void Tape::run_last_nodes() {
  const auto run_last = [&] {
    Node node = std::move(nodes_.back());
    nodes_.pop_back();
    run(node);
  };
  skippable_ = nodes_.back().skippable;
  if (skippable_ < 0) {
    run_last();
  } else {
    const Skippable& skippable = skippables_[static_cast<size_t>(skippable_)];
    context_->run_or_skip(skippable.count, skippable.above, [&] {
      while (!nodes_.empty() && nodes_.back().skippable == skippable_) run_last();
    });
  }
  skippable_ = -1;
  // After the closure, since listeners may use other streams.
  for (const Parameter* parameter : std::exchange(complete_, {}))
    if (ready_) ready_(*parameter);
}

std::vector<std::string> Tape::fill_unwritten(ParameterStore& store) {
  std::vector<std::string> unwritten;
  for (Parameter& parameter : store.parameters()) {
    if (parameter.written || parameter.options().frozen) continue;
    if (micro_step_ == 0) context_->fill_zero(parameter.grad);
    unwritten.push_back(parameter.name);
    if (ready_) ready_(parameter);
  }
  return unwritten;
}

std::vector<std::string> Tape::backward(const Var& loss, ParameterStore* store) {
  DT_CHECK(loss.needs_grad(), "backward: the loss depends on no parameter");
  const size_t slot = slot_of(loss, "backward");
  DT_CHECK(loss.value.count() == 1, "backward: the loss has shape ", loss.shape(), ", expected one element");
  DT_CHECK(!backward_, "backward: called twice on one tape; use a new Tape for each step");
  begin_gradients(store);
  backward_ = true;
  Slot& seed = slots_[slot];
  seed.grad = context_->empty(seed.shape, seed.dtype);
  seed_loss_gradient(*context_, seed.grad);
  while (!nodes_.empty()) run_last_nodes();
  return store ? fill_unwritten(*store) : std::vector<std::string>();
}

}  // namespace dtrain
