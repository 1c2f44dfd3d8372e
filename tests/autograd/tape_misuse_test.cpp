// Misuse of the tape: foreign Vars and tensors, closures that omit a gradient, a second backward pass.
#include <sys/mman.h>

#include <thread>

#include "dtrain/autograd/tape.h"
#include "dtrain/ops/batch_norm.h"
#include "dtrain/ops/bn_relu_max_pool.h"
#include "dtrain/ops/concat_channels.h"
#include "dtrain/ops/conv_bn_act.h"
#include "dtrain/ops/group_norm.h"
#include "dtrain/ops/loss.h"
#include "dtrain/ops/pointwise.h"
#include "dtrain/ops/pool.h"
#include "dtrain/ops/scalar_loss.h"
#include "dtrain/ops/update.h"
#include "dtrain/testing/check_op.h"
#include "libdtrain/ops/step_metrics.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

Var one(Tape& tape) { return tape.variable(tape.context().zeros({1})); }

// y = x, with a closure that receives its input.
template <class Closure>
Var identity(Tape& tape, const Var& x, Closure closure) {
  return tape.record("identity", x.value, {&x},
                     [x = x.without_value(), closure](Tape& t, const Tensor& dy) { closure(t, x, dy); });
}

// Inaccessible memory: an op that touches a tensor before rejecting it is killed by a signal.
class Untouchable final : public Allocator {
 public:
  void* allocate(size_t bytes) override {
    void* const block = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED) throw Error(Fault::resource, "no memory");
    return block;
  }
  void release(void* block, size_t bytes) noexcept override { munmap(block, bytes); }
  MemoryStats stats() const override { return {}; }
};

// Tensors on another device, and the expected errors.
struct Elsewhere {
  explicit Elsewhere(const Context& context)
      : device{context.is_cpu() ? DeviceKind::cuda : DeviceKind::cpu, 5},
        refusal(concat("a tensor on ", device, ", expected one on ", context.device())) {}
  Tensor operator()(Shape shape, DType dtype = DType::f32) const {
    const size_t bytes = static_cast<size_t>(shape.count()) * size_of(dtype);
    return {std::make_shared<Storage>(std::make_shared<Untouchable>(), bytes), 0, shape, dtype, device};
  }
  void is_refused(const std::function<void()>& action) const { expect_error(action, Fault::config, refusal); }

  Device device;
  std::string refusal;
};

TEST(TapeMisuse, AVarOfAnotherTapeIsRefused) {
  for (const auto& context : devices()) {
    Var before;
    {
      Tape tape(*context);
      before = relu(tape, one(tape));
    }
    Tape tape(*context);  // at the previous one's address, with equal slot numbers
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
    const Elsewhere elsewhere(*context);
    const Tensor images = elsewhere({1, 2, 2, 3});
    Tape tape(*context);
    elsewhere.is_refused([&] { tape.constant(images); });
    elsewhere.is_refused([&] { tape.variable(images); });
    elsewhere.is_refused([&] { tape.record("mine", images, {}, {}); });
    elsewhere.is_refused([&] { relu(tape, {images}); });
    elsewhere.is_refused([&] { max_pool(tape, {images}, {.kernel = 1, .stride = 1, .padding = 0}); });
    elsewhere.is_refused([&] { mean_squared_error(tape, {context->zeros({2})}, elsewhere({2})); });
    elsewhere.is_refused([&] { normalize_pixels(*context, images, {}); });
    const Var logits = tape.constant(context->zeros({1, 3}));
    elsewhere.is_refused([&] { softmax_cross_entropy(tape, logits, elsewhere({1}, DType::i32)); });
    elsewhere.is_refused([&] { softmax(*context, images.view({4, 3})); });
  }
}

// Kernels that take tensors in structs.
TEST(TapeMisuse, ATensorOfAnotherDeviceIsRefusedByNorms) {
  for (const auto& context : devices()) {
    const Elsewhere elsewhere(*context);
    Tape tape(*context);
    const Shape shape{1, 4, 4, 4};
    const Var x = tape.constant(context->zeros(shape)), c = tape.constant(context->zeros({4}));
    const Var other_x{elsewhere(shape)}, other_c{elsewhere({4})};
    elsewhere.is_refused([&] { group_norm(tape, other_x, c, c, 2); });
    elsewhere.is_refused([&] { group_norm(tape, x, other_c, c, 2); });
    elsewhere.is_refused([&] { group_norm(tape, x, c, other_c, 2); });
    elsewhere.is_refused([&] { layer_norm(tape, other_x, c, c); });

    const BatchNormState state{context->zeros({4}), context->zeros({4})};
    const BatchNormState other_mean{other_c.value, state.running_var}, other_var{state.running_mean, other_c.value};
    for (const bool frozen : {false, true}) {
      const BatchNormOptions options{.frozen = frozen};
      elsewhere.is_refused([&] { batch_norm(tape, other_x, c, c, state, options); });
      elsewhere.is_refused([&] { batch_norm(tape, x, other_c, c, state, options); });
      elsewhere.is_refused([&] { batch_norm(tape, x, c, other_c, state, options); });
      elsewhere.is_refused([&] { batch_norm(tape, x, c, c, other_mean, options); });
      elsewhere.is_refused([&] { batch_norm(tape, x, c, c, other_var, options); });
      elsewhere.is_refused([&] { batch_norm(tape, x, c, c, state, options, Activation::relu, &other_x); });
      elsewhere.is_refused([&] { bn_relu_max_pool(tape, other_x, c, c, state, options); });
      elsewhere.is_refused([&] { bn_relu_max_pool(tape, x, c, c, other_mean, options); });
    }
    const Var w = tape.constant(context->zeros({4, 1, 1, 4})), other_w{elsewhere({4, 1, 1, 4})};
    elsewhere.is_refused([&] { conv_bn_act(tape, x, w, {}, c, c, state, {}, Activation::relu, &other_x); });
    elsewhere.is_refused([&] { conv_bn_act(tape, x, other_w, {}, c, c, state, {}, Activation::relu, nullptr); });
  }
}

// Kernels that take tensors in lists.
TEST(TapeMisuse, ATensorOfAnotherDeviceIsFoundInAList) {
  for (const auto& context : devices()) {
    const Elsewhere elsewhere(*context);
    Tape tape(*context);
    const Var part = tape.constant(context->zeros({2, 4})), other_part{elsewhere({2, 4})};
    const auto join = [&](const std::vector<Var>& parts) { concat_channels(tape, parts); };
    elsewhere.is_refused([&] { join({other_part, part}); });
    elsewhere.is_refused([&] { join({part, other_part}); });
    const Var loss = tape.constant(context->zeros({1}));
    elsewhere.is_refused([&] { weighted_sum(tape, std::vector<Var>{loss, {elsewhere({1})}}, {1, 1}); });

    const Tensor one = context->zeros({1}), row = context->zeros({2 + kStepColumns});
    const auto add_sums = [&](const std::vector<Tensor>& sums) { add_step_sums(*context, sums, false, row); };
    elsewhere.is_refused([&] { add_sums({elsewhere({1}), one}); });
    elsewhere.is_refused([&] { add_sums({one, elsewhere({1})}); });

    const UpdatePlan plan(*context, {{.begin = 0, .end = 8}});
    const Tensor values = context->zeros({8}), other = elsewhere({8});
    const auto step = [&](const UpdateArenas& arenas) { update(*context, {}, plan, arenas, one); };
    elsewhere.is_refused([&] { step({other, values, {values}}); });
    elsewhere.is_refused([&] { step({values, other, {values}}); });
    elsewhere.is_refused([&] { step({values, values, {other}}); });
    elsewhere.is_refused([&] { step({values, values, {values}, elsewhere({8}, DType::f16)}); });
    elsewhere.is_refused([&] { l2_loss(*context, plan, other, one); });
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
    expect_error([&] { tape.backward(loss, &store); }, Fault::config, "backward: called twice on one tape");
    EXPECT_EQ(to_host(*context, a.grad).values, std::vector<double>{1});
    expect_error([&] { tape.grad(loss); }, Fault::config, "grad: the gradient of an op's output is not kept");
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
    {  // written by another op
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
    {  // does not affect the loss: not checked
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

// Else it would use the gradient of `b` if `a` is a constant.
TEST(TapeMisuse, AnInputThatRecordWasNotToldOfIsNamed) {
  const auto sum = [](Tape& tape, const Var& a, const Var& b) {
    Tensor y = tape.context().empty(a.shape());
    tape.context().copy(a.value, y);
    accumulate(tape.context(), b.value, y);
    return tape.record("sum", y, {&a}, [a = a.without_value(), b = b.without_value()](Tape& t, const Tensor& dy) {
      t.pass_grad(a, dy);
      t.pass_grad(b, dy);
    });
  };
  const auto context = make_cpu_context({.threads = 1});
  const OpCase test{.name = "sum",
                    .inputs = {random_array({4}, 1), random_array({4}, 2)},
                    .op = [&](Tape& tape, const std::vector<Var>& in) { return sum(tape, in[0], in[1]); },
                    .reference =
                        [](const std::vector<Array>& in) {
                          Array y = in[0];
                          for (int64_t i = 0; i < y.count(); ++i) y[i] += in[1][i];
                          return y;
                        }};
  expect_error([&] { check_op(*context, test); }, Fault::config,
               "sum: its closure writes the gradient of a Var that is not among the inputs that it was recorded with");
}

// Without a store, backward cannot report unwritten gradients; written ones are correct.
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
