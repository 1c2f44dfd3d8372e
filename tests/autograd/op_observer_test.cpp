// OpObserver: inputs, outputs and attributes of ops, in order; composites as their parts.
#include "dtrain/autograd/op_observer.h"

#include "dtrain/layers.h"
#include "dtrain/ops/pointwise.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

TEST(OpObserver, HearsOfOpsWithTheirOptions) {
  const auto context = make_cpu_context({.threads = 1});
  ParameterStore store(*context);
  const ConvBnAct layer{Conv2d(store, "conv", 3, 4, 3, {.conv = {.stride = 2, .padding = 1}}),
                        BatchNorm(store, "bn", 4, {.epsilon = 0.5f})};
  store.allocate(1);
  for (const Mode mode : {Mode::eval, Mode::train}) {
    Tape tape(*context, mode);
    std::vector<std::string> names;
    std::vector<Tensor> outputs;
    tape.op_observer().on_op([&](const RecordedOp& op) {
      names.emplace_back(op.name);
      if (names.back() == "conv2d") {
        const auto* const options = std::any_cast<Conv2dOptions>(&op.options);
        ASSERT_NE(options, nullptr);
        EXPECT_EQ(options->stride.h, 2);
        EXPECT_EQ(op.inputs[1]->value.raw(), layer.conv.weight->compute.raw());
      } else if (names.back() == "batch_norm") {
        const auto* const note = std::any_cast<BatchNormNote>(&op.options);
        ASSERT_NE(note, nullptr);
        EXPECT_EQ(note->first.epsilon, 0.5f);
        EXPECT_EQ(note->second, Activation::relu);
        EXPECT_EQ(op.inputs[0]->value.raw(), outputs.back().raw());
        EXPECT_FALSE(op.inputs[3]->value) << "the residual that there is none of";
      } else {
        EXPECT_FALSE(op.options.has_value()) << "the options of another op";
      }
      outputs.push_back(op.value);
    });
    const Var y = flatten(tape, layer(tape, tape.constant(context->zeros({2, 8, 8, 3}))));
    EXPECT_EQ(names, (std::vector<std::string>{"conv2d", "batch_norm", "reshape"}));
    EXPECT_EQ(outputs.back().shape(), y.shape());
  }
}

}  // namespace
}  // namespace dtrain
