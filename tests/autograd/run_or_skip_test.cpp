// run_or_skip on the tape: skipping work without effect changes no bit; readiness of parameters; forbidden writes.
#include "dtrain/autograd/tape.h"
#include "dtrain/ops/concat_channels.h"
#include "dtrain/ops/masked_losses.h"
#include "dtrain/ops/matmul.h"
#include "dtrain/ops/pointwise.h"
#include "dtrain/ops/slice_rows.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

constexpr int64_t kRows = 6, kInner = 5, kOuter = 4, kPartRows = 2;

// Loss over the first `count` of six rows, from GEMMs over parts of two rows each.
class LossInParts {
 public:
  struct Result {
    std::vector<float> loss, dx, dweight;
    bool operator==(const Result&) const = default;
  };

  explicit LossInParts(Context& context)
      : context_(context),
        store_(context),
        x_(to_device(context, random_array({kRows, kInner}, 7))),
        targets_(to_device(context, random_array({kRows, kOuter}, 8, 0, 1))),
        weights_(context.empty({kRows})),
        count_(context.empty({1})),
        loss_(context.empty({1})),
        dx_(context.empty({kRows, kInner})) {
    weight_ = &store_.add("weight", {kOuter, kInner}, Init::normal(1));
    store_.allocate(3);
  }

  void set_count(int64_t count) {
    Array weights({kRows}, 0);
    for (int64_t i = 0; i < count; ++i) weights[i] = 0.25;
    context_.copy(to_device(context_, weights), weights_);
    context_.copy(to_device(context_, Array({1}, static_cast<double>(count))), count_);
  }
  // As one part, or as parts of which those without valid rows may be skipped.
  void run(bool in_parts) {
    Tape tape(context_);
    const Var x = tape.variable(x_);
    const Var y = in_parts ? products_in_parts(tape, x) : linear(tape, x, tape.leaf(*weight_));
    const Var loss = sigmoid_cross_entropy(tape, y, targets_, weights_, {});
    tape.backward(loss, &store_);
    context_.copy(loss.value, loss_);
    context_.copy(tape.grad(x), dx_);
  }
  Result result() const {
    return {values_of<float>(context_, loss_), values_of<float>(context_, dx_),
            values_of<float>(context_, weight_->grad)};
  }

 private:
  Var products_in_parts(Tape& tape, const Var& x) const {
    std::vector<Var> parts(kRows / kPartRows);
    for (size_t i = parts.size(); i-- > 0;) {
      const int64_t begin = static_cast<int64_t>(i) * kPartRows;
      const auto record = [&] {
        const Var y = linear(tape, slice_rows(tape, x, begin, begin + kPartRows), tape.leaf(*weight_));
        parts[i] = reshape(tape, y, {1, kPartRows * kOuter});
      };
      if (i > 0)
        tape.run_or_skip(count_, static_cast<float>(begin), record);
      else
        record();
    }
    return reshape(tape, concat_channels(tape, parts), {kRows, kOuter});
  }

  Context& context_;
  ParameterStore store_;
  Parameter* weight_;
  Tensor x_, targets_, weights_, count_, loss_, dx_;
};

TEST(RunOrSkip, ChangesNoBit) {
  for (const auto& context : devices()) {
    LossInParts step(*context);
    const auto run = [&](int64_t count, bool in_parts) {
      step.set_count(count);
      step.run(in_parts);
      return step.result();
    };
    run(kRows, true);  // warm-up: libraries select algorithms
    const auto graph = context->is_cpu() ? nullptr : context->capture([&] { step.run(true); });
    for (const int64_t count : {6, 0, 3, 1, 2, 4, 5, 6}) {
      SCOPED_TRACE(count);
      const LossInParts::Result whole = run(count, false), parts = run(count, true);
      EXPECT_NEAR(parts.loss[0], whole.loss[0], 1e-6);
      for (size_t i = 0; i < whole.dx.size(); ++i) EXPECT_NEAR(parts.dx[i], whole.dx[i], 1e-6);
      for (size_t i = 0; i < whole.dweight.size(); ++i) EXPECT_NEAR(parts.dweight[i], whole.dweight[i], 1e-6);
      if (!graph) continue;
      context->launch(*graph);
      EXPECT_EQ(step.result(), parts);
    }
  }
}

TEST(RunOrSkip, ParametersAreReadyAfterItsEnd) {
  for (const auto& context : devices()) {
    ParameterStore store(*context);
    Parameter& weight = store.add("weight", {1}, Init::constant(2));
    store.allocate(0);
    Tape tape(*context);
    int ready = 0, closures = 0;
    tape.on_ready([&](const Parameter&) { ++ready; });
    const auto identity = [&](const Var& x) {
      return tape.record("identity", x.value, {&x}, [&, x = x.without_value()](Tape& t, const Tensor& dy) {
        EXPECT_EQ(ready, 0);
        ++closures;
        t.pass_grad(x, dy);
      });
    };
    Var first;
    tape.run_or_skip(context->zeros({1}), 0, [&] { first = identity(identity(tape.leaf(weight))); });
    const Var loss = add(tape, first, tape.leaf(weight));
    tape.backward(loss, &store);
    EXPECT_EQ(closures, 2);
    EXPECT_EQ(ready, 1);
    EXPECT_EQ(values_of<float>(*context, weight.grad)[0], 2);
  }
}

TEST(RunOrSkip, IsNotTheFirstToWriteWhatOthersUse) {
  for (const auto& context : devices()) {
    ParameterStore store(*context);
    Parameter& weight = store.add("weight", {1}, Init::constant(2));
    store.allocate(0);
    const Tensor count = context->zeros({1});
    const auto refused = [&](const std::function<Var(Tape&)>& ops) {
      Tape tape(*context);
      Var y;
      tape.run_or_skip(count, 0, [&] { y = ops(tape); });
      expect_error([&] { tape.backward(y, &store); }, Fault::config, "in run_or_skip, but first to write");
    };
    refused([&](Tape& tape) { return relu(tape, tape.leaf(weight)); });
    refused([&](Tape& tape) { return relu(tape, tape.variable(context->zeros({1}))); });
    Tape tape(*context);
    expect_error([&] { tape.run_or_skip(count, 0, [&] { tape.run_or_skip(count, 0, [] {}); }); }, Fault::config,
                 "run_or_skip: nested calls are not supported");
  }
}

}  // namespace
}  // namespace dtrain
