// Chain: inferred shapes, padding and branches.
#include "models/chain.h"

#include "tests/testing.h"

namespace dtrain::models {
namespace {

// Parameter store and build inputs for images of 13 pixels.
struct ChainRig {
  explicit ChainRig(Context& context) : store(context) {}

  ParameterStore store;
  Trace trace{13};
  Chain chain{BuildInputs{store, trace, 5, nullptr}};

  Var run(Tape& tape) { return chain.layers()(tape, image(tape)); }
  static Var image(Tape& tape) { return tape.constant(to_device(tape.context(), random_array({1, 13, 13, 3}, 1))); }
};

TEST(Chain, InfersOutputShapes) {
  for (const auto& context : devices())
    for (const Border border : {Border::same, Border::valid, Border::half}) {
      ChainRig rig(*context);
      rig.chain.conv("a", 4, {5, 4}, {.stride = {2, 3}, .border = border}).max_pool(2, 1, border);
      const int64_t channels = rig.chain.channels();
      rig.chain.join({rig.chain.branch(), rig.chain.branch().average_pool(3, 1, Border::same)});
      EXPECT_EQ(rig.chain.channels(), 2 * channels);
      rig.store.allocate(1);
      Tape tape(*context, Mode::eval);
      EXPECT_EQ(rig.run(tape).shape(), rig.chain.shape());
    }
}

TEST(Chain, PadsAsTensorFlowDoes) {
  const auto context = make_cpu_context();
  ChainRig rig(*context);
  EXPECT_EQ(rig.chain.branch().max_pool(2, 2, Border::same).shape(), (Shape{1, 7, 7, 3}));
  EXPECT_EQ(rig.chain.branch().max_pool(2, 2, Border::valid).shape(), (Shape{1, 6, 6, 3}));
  EXPECT_EQ(rig.chain.branch().max_pool(4, 2, Border::half).shape(), (Shape{1, 7, 7, 3}));
  EXPECT_EQ(rig.chain.branch().average_pool({1, 3}, {1, 2}, Border::valid).shape(), (Shape{1, 13, 6, 3}));
}

TEST(Chain, AddsAndConcatenatesBranches) {
  for (const auto& context : devices()) {
    ChainRig sum(*context), both(*context);
    sum.chain.add(sum.chain.branch(), sum.chain.branch());
    both.chain.join({both.chain.branch(), both.chain.branch()});
    Tape tape(*context, Mode::eval);
    const Array image = to_host(*context, ChainRig::image(tape).value);
    const Array added = to_host(*context, sum.run(tape).value), joined = to_host(*context, both.run(tape).value);
    for (int64_t i = 0; i < image.count(); ++i) {
      EXPECT_EQ(added[i], 2 * image[i]);
      EXPECT_EQ(joined[i / 3 * 6 + i % 3], image[i]);
      EXPECT_EQ(joined[i / 3 * 6 + 3 + i % 3], image[i]);
    }
  }
}

TEST(Chain, BranchesHavePaths) {
  const auto context = make_cpu_context();
  ChainRig rig(*context);
  rig.chain.branch("outer").branch("inner").basic_conv("a", 4, 1);
  rig.chain.branch("outer").branch().linear("b", 2);
  for (const char* name : {"outer.inner.a.conv.weight", "outer.inner.a.bn.bias", "outer.b.weight"})
    EXPECT_NE(rig.store.find(name), nullptr) << name;
  EXPECT_EQ(rig.trace.layers.size(), 2u);
  EXPECT_EQ(rig.chain.shape(), (Shape{1, 13, 13, 3}));
}

TEST(Chain, RejectsMismatchedBranches) {
  const auto context = make_cpu_context();
  ChainRig rig(*context);
  Chain& chain = rig.chain;
  expect_error([&] { chain.join({}); }, Fault::config, "no branch");
  const Chain half = chain.branch().max_pool(2, 2, Border::same);
  expect_error([&] { chain.join({chain.branch(), half}); }, Fault::config, "[1, 13, 13, 3] and [1, 7, 7, 3]");
  expect_error([&] { chain.add(chain.branch(), half); }, Fault::config, "expected equal shapes");
}

}  // namespace
}  // namespace dtrain::models
