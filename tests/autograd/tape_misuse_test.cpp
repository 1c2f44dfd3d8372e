// What a tape refuses: Vars and tensors of elsewhere, closures that leave a gradient out, a second backward pass.
#include <thread>

#include "libdtrain/autograd/tape.h"
#include "libdtrain/ops/batch_norm.h"
#include "libdtrain/ops/loss.h"
#include "libdtrain/ops/pointwise.h"
#include "libdtrain/ops/pool.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

Var one(Tape& tape) { return tape.variable(tape.context().zeros({1})); }

// y = x, with a closure that is told its input.
template <class Closure>
Var identity(Tape& tape, const Var& x, Closure closure) {
  return tape.record("identity", x.value, {&x},
                     [x = x.without_value(), closure](Tape& t, const Tensor& dy) { closure(t, x, dy); });
}

TEST(TapeMisuse, AVarOfAnotherTapeIsRefused) {
  for (const auto& context : devices()) {
    Var before;
    {
      Tape tape(*context);
      before = relu(tape, one(tape));
    }
    Tape tape(*context);  // where the last one was, with slots of the same numbers
    const Var own = one(tape);
    relu(tape, own);
    const auto refuses = [&](const std::function<void()>& action, const std::string& what) {
      expect_error(action, Fault::config, what + ": a Var of another tape");
    };
    refuses([&] { relu(tape, before); }, "relu");
    refuses([&] { add(tape, own, before); }, "add");
    refuses([&] { tape.backward(before); }, "backward");
    refuses([&] { tape.grad(before); }, "grad");
    const Var y = identity(tape, own, [&](Tape& t, const Var&, const Tensor&) { t.grad_target(before); });
    refuses([&] { tape.backward(y); }, "grad_target");

    Tape other(*context);
    const Var z = identity(other, one(other), [&](Tape& t, const Var&, const Tensor& dy) { t.pass_grad(before, dy); });
    refuses([&] { other.backward(z); }, "pass_grad");

    Tape eval(*context, Mode::eval);
    refuses([&] { relu(eval, before); }, "relu");
    relu(eval, eval.constant(before.value));
  }
}

TEST(TapeMisuse, ATensorOfAnotherDeviceIsRefused) {
  for (const auto& context : devices()) {
    const Device device{context->is_cpu() ? DeviceKind::cuda : DeviceKind::cpu, 5};
    const Tensor elsewhere(std::make_shared<Storage>(context->host_allocator(), 48), 0, {1, 2, 2, 3}, DType::f32,
                           device);
    const Tensor labels(std::make_shared<Storage>(context->host_allocator(), 4), 0, {1}, DType::i32, device);
    const std::string part = concat("a tensor on ", device, ", expected one on ", context->device());
    Tape tape(*context);
    expect_error([&] { tape.constant(elsewhere); }, Fault::config, part);
    expect_error([&] { tape.variable(elsewhere); }, Fault::config, part);
    expect_error([&] { tape.record("mine", elsewhere, {}, {}); }, Fault::config, part);
    expect_error([&] { relu(tape, {elsewhere}); }, Fault::config, part);
    expect_error([&] { max_pool(tape, {elsewhere}, {.kernel = 1, .stride = 1, .padding = 0}); }, Fault::config, part);
    const Var channels = tape.constant(context->zeros({3}));
    const BatchNormState state{context->zeros({3}), context->zeros({3})};
    expect_error([&] { batch_norm(tape, {elsewhere}, channels, channels, state, {}); }, Fault::config, part);
    expect_error([&] { normalize_pixels(*context, elsewhere, {}); }, Fault::config, part);
    expect_error(
        [&] {
          softmax_cross_entropy(tape, tape.constant(context->zeros({1, 3})), labels);
        },
        Fault::config, part);
    expect_error([&] { softmax(*context, elsewhere.view({4, 3})); }, Fault::config, part);
  }
}

TEST(TapeMisuse, BackwardRunsOnce) {
  for (const auto& context : devices()) {
    ParameterStore store(*context);
    Parameter& a = store.add("a", {1}, Init::constant(2));
    store.allocate(0);
    Tape tape(*context);
    const Var loss = relu(tape, tape.leaf(a));
    expect_error([&] { tape.grad(loss); }, Fault::config, "grad: backward() has not run");
    tape.backward(loss, &store);
    expect_error([&] { tape.backward(loss, &store); }, Fault::config, "backward: this tape has run it already");
    EXPECT_EQ(to_host(*context, a.grad).values, std::vector<double>{1});
    expect_error([&] { tape.grad(loss); }, Fault::config, "grad: of an op's output");
  }
}

TEST(TapeMisuse, AClosureThatLeavesAGradientOutIsNamed) {
  for (const auto& context : devices()) {
    const std::string part = "identity: its closure wrote no gradient of an input of shape [1]";
    {
      Tape tape(*context);
      const Var y = identity(tape, one(tape), [](Tape&, const Var&, const Tensor&) {});
      expect_error([&] { tape.backward(relu(tape, y)); }, Fault::config, part);
    }
    {  // where another op has written it
      Tape tape(*context);
      const Var x = one(tape), y = identity(tape, x, [](Tape&, const Var&, const Tensor&) {});
      expect_error([&] { tape.backward(add(tape, y, relu(tape, x))); }, Fault::config, part);
    }
    {  // a parameter
      ParameterStore store(*context);
      Parameter& a = store.add("a", {1}, Init::constant(2));
      store.allocate(0);
      Tape tape(*context);
      const Var y = identity(tape, tape.leaf(a), [](Tape&, const Var&, const Tensor&) {});
      expect_error([&] { tape.backward(y, &store); }, Fault::config, part);
    }
    {  // what leads to no loss is not asked
      Tape tape(*context);
      const Var x = one(tape);
      identity(tape, x, [](Tape&, const Var&, const Tensor&) {});
      tape.backward(relu(tape, x));
    }
    Tape tape(*context);
    const Var x = one(tape);
    expect_error([&] { tape.record("mine", x.value, {&x}, {}); }, Fault::config, "mine: recorded without a closure");
    expect_error([&] { tape.record("mine", x.value, {&x, nullptr}, {}); }, Fault::config, "mine: a null input");
    expect_error([&] { tape.grad_target(x); }, Fault::config, "grad_target: called outside a closure");
    expect_error([&] { tape.pass_grad(x, x.value); }, Fault::config, "pass_grad: called outside a closure");
  }
}

// Without the store backward cannot tell what nobody wrote; what was written is right all the same.
TEST(TapeMisuse, GradientsAreStoredAnewWithoutTheStoreToo) {
  for (const auto& context : devices()) {
    ParameterStore store(*context), other(*context);
    Parameter& a = store.add("a", {1}, Init::constant(2));
    other.add("b", {1}, Init::constant(2));
    store.allocate(0);
    other.allocate(0);
    for (int step = 0; step < 2; ++step) {
      Tape tape(*context);
      tape.backward(relu(tape, tape.leaf(a)));
      EXPECT_EQ(to_host(*context, a.grad).values, std::vector<double>{1}) << step;
    }
    Tape tape(*context);
    expect_error([&] { tape.backward(relu(tape, tape.leaf(a)), &other); }, Fault::config,
                 "parameter a is not of this store");
  }
}

TEST(TapeMisuse, OneThreadRecordsAtATime) {
  const auto context = make_cpu_context({.threads = 1});
  const auto on_a_thread = [](const std::function<void()>& action) { std::thread(action).join(); };
  {
    const Tape first(*context), second(*context);
    on_a_thread([&] {
      expect_error([&] { const Tape tape(*context); }, Fault::config, "records on another thread");
      const Tape eval(*context, Mode::eval);
    });
  }
  on_a_thread([&] { const Tape tape(*context); });
  const Tape tape(*context);
}

}  // namespace
}  // namespace dtrain
