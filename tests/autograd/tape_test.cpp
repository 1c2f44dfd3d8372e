// Tape bookkeeping, with ops whose gradients are predictable.
#include "dtrain/autograd/tape.h"

#include <cmath>

#include "dtrain/ops/pointwise.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

using Values = std::vector<double>;

// y = factor * x; the closure runs `seen`, if given; `held` lives as long as the closure.
Var scale(Tape& tape, const Var& x, double factor, std::function<void()> seen = {}, Tensor held = {}) {
  Context& context = tape.context();
  auto scaled = [](Context& c, Array values, double f) {
    for (double& value : values.values) value *= f;
    return to_device(c, values);
  };
  return tape.record("scale", scaled(context, to_host(context, x.value), factor), {&x},
                     [=, x = x.without_value(), held = std::move(held)](Tape& t, const Tensor& dy) {
                       if (seen) seen();
                       const Tensor dx = scaled(t.context(), to_host(t.context(), dy), factor);
                       const auto target = t.grad_target(x);
                       if (target->add)
                         accumulate(t.context(), dx, target->dx);
                       else
                         t.context().copy(dx, target->dx);
                     });
}

// Two parameters of two elements; the gradient arena starts as NaN, like stale memory.
struct Store {
  explicit Store(Context& context) : store(context) {
    a = &store.add("a", {1}, Init::constant(2));
    b = &store.add("b", {1}, Init::constant(3));
    frozen = &store.add("frozen", {1}, Init::constant(5), {.frozen = true});
    store.allocate(0);
    const std::vector<float> nan(static_cast<size_t>(store.grads().count()), NAN);
    context.upload(nan.data(), store.grads());
  }
  Values grad(const Parameter* parameter) const { return to_host(store.context(), parameter->grad).values; }

  ParameterStore store;
  Parameter *a, *b, *frozen;
};

TEST(Tape, ASharedWeightStoresThenAddsAndIsReadyOnce) {
  for (const auto& context : devices()) {
    Store s(*context);
    Tape tape(*context);
    std::vector<std::string> events;
    tape.on_ready([&](const Parameter& parameter) { events.push_back("ready " + parameter.name); });
    auto seen = [&](const char* what) { return [&events, what] { events.emplace_back(what); }; };
    const Var first = scale(tape, tape.leaf(*s.a), 3, seen("first"));
    const Var second = scale(tape, tape.leaf(*s.a), 4, seen("second"));
    const Var other = scale(tape, tape.leaf(*s.b), 5, seen("other"));
    const Var loss = add(tape, add(tape, first, second), other);
    EXPECT_TRUE(tape.backward(loss, &s.store).empty());
    EXPECT_EQ(events, (std::vector<std::string>{"other", "ready b", "second", "first", "ready a"}));
    EXPECT_EQ(s.grad(s.a), Values{7});
    EXPECT_EQ(s.grad(s.b), Values{5});
  }
}

TEST(Tape, MicroStepsAddUp) {
  for (const auto& context : devices()) {
    Store s(*context);
    // b is used in the second micro-step only and must find zero.
    Tape first(*context, Mode::train, 0);
    EXPECT_EQ(first.backward(scale(first, first.leaf(*s.a), 3), &s.store), std::vector<std::string>{"b"});
    EXPECT_EQ(s.grad(s.b), Values{0});
    Tape second(*context, Mode::train, 1);
    const Var loss = add(second, scale(second, second.leaf(*s.a), 4), scale(second, second.leaf(*s.b), 5));
    EXPECT_TRUE(second.backward(loss, &s.store).empty());
    EXPECT_EQ(s.grad(s.a), Values{7});
    EXPECT_EQ(s.grad(s.b), Values{5});
    // a is not written here and keeps its gradient.
    Tape third(*context, Mode::train, 2);
    EXPECT_EQ(third.backward(scale(third, third.leaf(*s.b), 1), &s.store), std::vector<std::string>{"a"});
    EXPECT_EQ(s.grad(s.a), Values{7});
    EXPECT_EQ(s.grad(s.b), Values{6});
    // The next step overwrites.
    Tape next(*context);
    next.backward(scale(next, next.leaf(*s.a), 9), &s.store);
    EXPECT_EQ(s.grad(s.a), Values{9});
  }
}

TEST(Tape, AnOutputThatDoesNotReachTheLossRunsNoClosure) {
  for (const auto& context : devices()) {
    Store s(*context);
    Tape tape(*context);
    std::vector<std::string> ready;
    tape.on_ready([&](const Parameter& parameter) { ready.push_back(parameter.name); });
    const Var loss = scale(tape, tape.leaf(*s.a), 3);
    const Var x = tape.variable(context->zeros({1}));
    bool ran = false;
    scale(tape, tape.leaf(*s.b), 4, [&] { ran = true; });
    scale(tape, tape.leaf(*s.a), 4, [&] { ran = true; });
    scale(tape, x, 4, [&] { ran = true; });
    EXPECT_EQ(tape.backward(loss, &s.store), std::vector<std::string>{"b"});
    EXPECT_FALSE(ran);
    EXPECT_EQ(ready, (std::vector<std::string>{"a", "b"}));
    EXPECT_EQ(s.grad(s.a), Values{3});
    EXPECT_EQ(s.grad(s.b), Values{0});
    EXPECT_FALSE(tape.grad(x).defined());
  }
}

TEST(Tape, ClosuresDieAsTheyRun) {
  for (const auto& context : devices()) {
    Store s(*context);
    Tape tape(*context);
    constexpr int64_t kHeld = 1 << 20;
    std::vector<size_t> in_use;
    Var x = tape.leaf(*s.a);
    for (int i = 0; i < 5; ++i)
      x = scale(
          tape, x, 1, [&] { in_use.push_back(context->memory_stats().in_use); }, context->empty({kHeld}));
    tape.backward(x, &s.store);
    ASSERT_EQ(in_use.size(), 5u);
    for (size_t i = 1; i < 5; ++i) EXPECT_EQ(in_use[i - 1] - in_use[i], kHeld * sizeof(float)) << i;
    EXPECT_EQ(tape.recorded(), 0u);
  }
}

TEST(Tape, APassedGradientIsCopiedBeforeItIsAddedTo) {
  for (const auto& context : devices()) {
    Tape tape(*context);
    const Var a = tape.variable(context->zeros({1})), b = tape.variable(context->zeros({1}));
    const Var three_a = scale(tape, a, 3);
    const Var sum = add(tape, a, b);  // runs first and passes the same tensor to a and b
    tape.backward(add(tape, three_a, sum));
    EXPECT_EQ(to_host(*context, tape.grad(a)).values, Values{4});
    EXPECT_EQ(to_host(*context, tape.grad(b)).values, Values{1});
  }
}

TEST(Tape, AGradientPassedToOneIsNotCopied) {
  for (const auto& context : devices()) {
    Tape tape(*context);
    const Var x = tape.variable(context->zeros({2, 3}));
    const void* passed = nullptr;
    const Var y = flatten(tape, x);
    const Tensor sum = context->zeros({1});
    const Var loss = tape.record("sum", sum, {&y}, [&, y = y.without_value()](Tape& t, const Tensor&) {
      const auto target = t.grad_target(y);
      context->fill_zero(target->dx);
      passed = target->dx.raw();
    });
    tape.backward(loss);
    EXPECT_EQ(tape.grad(x).raw(), passed);
    EXPECT_EQ(tape.grad(x).shape(), (Shape{2, 3}));
  }
}

TEST(Tape, EvalRecordsNothing) {
  for (const auto& context : devices()) {
    Store s(*context);
    Tape tape(*context, Mode::eval);
    const Var x = tape.variable(context->zeros({1}));
    const Var y = add(tape, scale(tape, tape.leaf(*s.a), 3), x);
    EXPECT_FALSE(x.needs_grad() || y.needs_grad());
    EXPECT_EQ(tape.recorded(), 0u);
    EXPECT_FALSE(tape.wants_grad({&x, &y}));
    EXPECT_EQ(to_host(*context, y.value).values, Values{6});
  }
}

TEST(Tape, ConstantsAndFrozenParametersRecordNothing) {
  for (const auto& context : devices()) {
    Store s(*context);
    Tape tape(*context);
    const Var x = tape.constant(context->zeros({1}));
    const Var y = add(tape, tape.leaf(*s.frozen), x);
    EXPECT_EQ(tape.recorded(), 0u);
    EXPECT_FALSE(y.needs_grad());
    const Var loss = add(tape, y, tape.leaf(*s.a));
    EXPECT_EQ(tape.recorded(), 1u);
    EXPECT_EQ(tape.backward(loss, &s.store), std::vector<std::string>{"b"});
    EXPECT_EQ(s.grad(s.a), Values{1});
  }
}

TEST(Tape, TheLossScaleIsTheGradientOfTheLoss) {
  for (const auto& context : devices()) {
    Store s(*context);
    context->set_step_state({.loss_scale = 1024});
    Tape tape(*context);
    tape.backward(scale(tape, tape.leaf(*s.a), 3), &s.store);
    EXPECT_EQ(s.grad(s.a), Values{3072});
  }
}

TEST(Tape, StreamsDifferWithinAStepAndRepeatFromStepToStep) {
  const auto context = make_cpu_context();
  Tape first(*context), again(*context), micro(*context, Mode::train, 1);
  const uint64_t stream = first.next_stream();
  EXPECT_NE(stream, first.next_stream());
  EXPECT_EQ(stream, again.next_stream());
  EXPECT_NE(stream, micro.next_stream());
}

TEST(Tape, SaysWhereAnotherPartBegins) {
  const auto context = make_cpu_context();
  Tape tape(*context);
  std::vector<std::string> parts;
  const auto ran = [&] { parts.emplace_back("closure"); };
  tape.on_part([&](const char* part) { parts.emplace_back(part); });
  tape.part("trunk");
  Var x = scale(tape, tape.variable(context->zeros({1})), 2, ran);
  tape.part("head");
  x = scale(tape, scale(tape, x, 3, ran), 4, ran);
  tape.part("trunk");
  EXPECT_EQ(parts, (std::vector<std::string>{"trunk", "head", "trunk"}));
  parts.clear();
  tape.backward(x);
  EXPECT_EQ(parts, (std::vector<std::string>{"head", "closure", "closure", "trunk", "closure"}));
}

TEST(Tape, NamesTheOpThatFailed) {
  const auto context = make_cpu_context();
  Tape tape(*context);
  const Var x = tape.variable(context->zeros({1}));
  const Var bad = tape.record("bad", context->zeros({1}), {&x}, [](Tape&, const Tensor&) { throw Error("inside"); });
  const Var loss = scale(tape, bad, 2);
  EXPECT_STREQ(tape.current_op(), "scale");
  expect_error([&] { tape.backward(loss); }, Fault::config, "inside");
  EXPECT_STREQ(tape.current_op(), "bad");
}

TEST(Tape, Refuses) {
  const auto context = make_cpu_context();
  Store s(*context), other(*context);
  Tape tape(*context);
  expect_error([&] { tape.backward(tape.constant(context->zeros({1}))); }, Fault::config, "depends on no parameter");
  expect_error([&] { tape.backward(tape.variable(context->zeros({2}))); }, Fault::config, "[2]");
  expect_error([&] { tape.grad(tape.constant(context->zeros({1}))); }, Fault::config, "constant");
  tape.leaf(*s.a);
  expect_error([&] { tape.leaf(*other.a); }, Fault::config, "one store only");
  ParameterStore unready(*context);
  Parameter& w = unready.add("w", {1}, Init::constant(0));
  expect_error([&] { tape.leaf(w); }, Fault::config, "before ParameterStore::allocate()");
}

}  // namespace
}  // namespace dtrain
