#include "libdtrain/autograd/tape.h"

#include "libdtrain/ops/pointwise.h"

namespace dtrain {

int Tape::add_slot(const Tensor& value) {
  slots_.push_back({value.shape(), value.dtype(), {}, nullptr, 0, false});
  return static_cast<int>(slots_.size()) - 1;
}

Var Tape::variable(Tensor value) {
  const DType dtype = value.dtype();
  return variable(std::move(value), dtype);
}

Var Tape::variable(Tensor value, DType gradient) {
  if (!training()) return constant(std::move(value));
  const int slot = add_slot(value);
  slots_[static_cast<size_t>(slot)].keep = true;
  slots_[static_cast<size_t>(slot)].dtype = gradient;
  return {std::move(value), slot};
}

Var Tape::leaf(Parameter& parameter) {
  DT_CHECK(parameter.compute.defined(), "parameter ", parameter.name, " used before ParameterStore::allocate()");
  if (!training() || parameter.options().frozen) return constant(parameter.compute);
  DT_CHECK(parameter.grad.defined(), "parameter ", parameter.name,
           " is to be trained, but was allocated without gradients, for inference alone: expected Mode::eval");
  // A weight that is used twice has one slot, so that its gradient is ready after the second use.
  const size_t index = static_cast<size_t>(parameter.index);
  if (index >= parameter_slots_.size()) parameter_slots_.resize(index + 1, -1);
  int& slot = parameter_slots_[index];
  if (slot < 0) {
    slot = add_slot(parameter.grad);  // as the master's: neither of 16 bits nor padded
    slots_[static_cast<size_t>(slot)].parameter = &parameter;
  }
  DT_CHECK(slots_[static_cast<size_t>(slot)].parameter == &parameter, "parameter ", parameter.name,
           ": a tape takes the parameters of one store only");
  return {parameter.compute, slot};
}

bool Tape::wants_grad(std::initializer_list<const Var*> inputs) const {
  if (!training()) return false;
  for (const Var* input : inputs)
    if (input->needs_grad()) return true;
  return false;
}

Var Tape::record(const char* op, Tensor value, std::initializer_list<const Var*> inputs, Backward backward) {
  current_op_ = op;
  if (!wants_grad(inputs)) return constant(std::move(value));
  Node node{op, add_slot(value), {}, std::move(backward)};
  bytes_ += value.bytes();
  for (const Var* input : inputs) {
    if (input->value) bytes_ += input->value.bytes();
    if (!input->needs_grad()) continue;
    node.inputs.push_back(input->slot);
    ++slots_[static_cast<size_t>(input->slot)].uses;
  }
  Var output{std::move(value), node.output};
  nodes_.push_back(std::move(node));
  return output;
}

const Tensor& Tape::grad(const Var& leaf) const {
  DT_CHECK(leaf.needs_grad(), "gradient of a constant asked for");
  const Slot& slot = slots_[static_cast<size_t>(leaf.slot)];
  return slot.parameter ? slot.parameter->grad : slot.grad;
}

std::optional<GradTarget> Tape::grad_target(const Var& x) {
  if (!x.needs_grad()) return std::nullopt;
  Slot& slot = slots_[static_cast<size_t>(x.slot)];
  if (Parameter* parameter = slot.parameter) {
    const bool add = parameter->written || micro_step_ > 0;
    parameter->written = true;
    return GradTarget{parameter->grad, add};
  }
  if (!slot.grad) {
    slot.grad = context_.empty(slot.shape, slot.dtype);
    return GradTarget{slot.grad, false};
  }
  // Passed on by another op and possibly still read there: adding in place would change what it reads.
  if (!slot.grad.unique()) {
    Tensor own = context_.empty(slot.shape, slot.dtype);
    context_.copy(slot.grad, own);
    slot.grad = own;
  }
  return GradTarget{slot.grad, true};
}

void Tape::pass_grad(const Var& x, const Tensor& dx) {
  if (!x.needs_grad()) return;
  Slot& slot = slots_[static_cast<size_t>(x.slot)];
  if (!slot.parameter && !slot.grad) {
    slot.grad = dx.view(slot.shape);
    return;
  }
  const GradTarget target = *grad_target(x);
  if (target.add)
    accumulate(context_, dx.view(slot.shape), target.dx);
  else
    context_.copy(dx, target.dx);
}

void Tape::finish_use(int index) {
  Slot& slot = slots_[static_cast<size_t>(index)];
  if (--slot.uses == 0 && slot.parameter && slot.parameter->written && ready_) ready_(*slot.parameter);
}

std::vector<std::string> Tape::backward(const Var& loss, ParameterStore* store) {
  DT_CHECK(loss.needs_grad(), "backward: the loss depends on no parameter");
  DT_CHECK(loss.value.count() == 1, "backward: the loss has shape ", loss.shape(), ", expected one element");
  if (store)
    for (Parameter& parameter : store->parameters()) parameter.written = false;
  Slot& seed = slots_[static_cast<size_t>(loss.slot)];
  seed.grad = context_.empty(seed.shape, seed.dtype);
  seed_loss_gradient(context_, seed.grad);
  while (!nodes_.empty()) {
    Node node = std::move(nodes_.back());
    nodes_.pop_back();
    current_op_ = node.op;
    // No consumer wrote a gradient: this output does not lead to the loss.
    Slot& output = slots_[static_cast<size_t>(node.output)];
    if (output.grad) node.backward(*this, output.grad);
    if (!output.keep) output.grad = {};
    node.backward = nullptr;
    for (int input : node.inputs) finish_use(input);
  }
  std::vector<std::string> unwritten;
  if (!store) return unwritten;
  for (Parameter& parameter : store->parameters()) {
    if (parameter.written || parameter.options().frozen) continue;
    if (micro_step_ == 0) context_.fill_zero(parameter.grad);
    unwritten.push_back(parameter.name);
    if (ready_) ready_(parameter);
  }
  return unwritten;
}

}  // namespace dtrain
