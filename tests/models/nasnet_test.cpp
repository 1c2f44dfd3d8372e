// NASNet: auxiliary head, drop path and parameter counts.
#include "models/nasnet.h"

#include "dtrain/models/catalog.h"
#include "dtrain/ops/loss.h"
#include "dtrain/ops/scalar_loss.h"
#include "tests/testing.h"

namespace dtrain::models {
namespace {

// Three cells of eight filters on images of 16 pixels, with the auxiliary head on the second cell.
const NasNetOptions kSmallNasNet{.cells = 3,
                                 .filters = 8,
                                 .stem_multiplier = 3,
                                 .imagenet = false,
                                 .dropout = 0,
                                 .drop_path = 0.5f,
                                 .training_steps = 10,
                                 .auxiliary_head = true};

Var nasnet_images(Tape& tape) { return tape.constant(to_device(tape.context(), random_array({4, 16, 16, 3}, 1))); }

TEST(NasNet, AuxiliaryHeadOnlyInTraining) {
  const auto context = make_cpu_context();
  ParameterStore store(*context);
  Trace trace(16);
  const NasNet model(store, trace, kSmallNasNet, /*classes=*/5);
  store.allocate(1);
  const Tensor labels = to_device<int32_t>(*context, {4}, {0, 1, 2, 3});
  Tape eval(*context, Mode::eval), train(*context);
  std::vector<Var> auxiliary;
  EXPECT_EQ(model(eval, nasnet_images(eval), &auxiliary).shape(), (Shape{4, 5}));
  EXPECT_TRUE(auxiliary.empty());
  const Var logits = model(train, nasnet_images(train), &auxiliary);
  ASSERT_EQ(auxiliary.size(), 1u);
  EXPECT_EQ(auxiliary[0].shape(), (Shape{4, 5}));
  const Var losses[] = {softmax_cross_entropy(train, logits, labels).loss,
                        softmax_cross_entropy(train, auxiliary[0], labels).loss};
  train.backward(weighted_sum(train, {losses[0], losses[1]}, {1, 0.4f}), &store);
  for (const char* name : {"l1_stem_3x3.weight", "cell_0.comb_iter_0.left.separable_5x5_1.depthwise.weight",
                           "cell_1.path2_conv.weight", "reduction_cell_1.comb_iter_1.right.bn_sep_7x7_2.bias",
                           "aux_1.aux_logits.proj.weight", "aux_1.aux_logits.FC.weight", "final_layer.FC.bias"}) {
    const Parameter* parameter = store.find(name);
    ASSERT_NE(parameter, nullptr) << name;
    EXPECT_GT(largest(to_host(*context, parameter->grad)), 0) << name;
  }
}

TEST(NasNet, DropPathRampsUp) {
  const auto context = make_cpu_context();
  ParameterStore store(*context);
  Trace trace(16);
  NasNetOptions options = kSmallNasNet;
  options.batch_norm.frozen = true;
  const NasNet model(store, trace, options, /*classes=*/5);
  store.allocate(1);
  const auto logits = [&](uint64_t step, Mode mode) {
    context->set_scalars({.step = step});
    Tape tape(*context, mode);
    return to_host(*context, model(tape, nasnet_images(tape)).value).values;
  };
  const auto whole = logits(0, Mode::eval);
  EXPECT_EQ(logits(0, Mode::train), whole);
  const auto late = logits(10, Mode::train);
  EXPECT_NE(late, whole);
  EXPECT_EQ(logits(10, Mode::train), late);
  EXPECT_EQ(logits(10, Mode::eval), whole);
}

// 3.3 million in table 1 of the paper, the only published figure.
TEST(NasNet, CifarVariantHasPublishedSize) {
  const auto context = make_cpu_context();
  ParameterStore store(*context);
  make_classifier(store, classifier_info("nasnet", "cifar10"), {.classes = 10});
  EXPECT_NEAR(static_cast<double>(store.parameter_count()), 3.3e6, 0.05e6);
}

TEST(NasNet, RejectsOddNumberOfFilters) {
  const auto context = make_cpu_context();
  ParameterStore store(*context);
  Trace trace(64);
  expect_error([&] { NasNet(store, trace, {.cells = 3, .filters = 6}, 5); }, Fault::config,
               "3 filters, expected an even number");
}

}  // namespace
}  // namespace dtrain::models
