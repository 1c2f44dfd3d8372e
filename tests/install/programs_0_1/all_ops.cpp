// A network that has every kind of layer and op of version 0.1, on random values.
#include <cmath>
#include <cstdio>
#include <memory>

#include "libdtrain/autograd/op_watch.h"
#include "libdtrain/autograd/parameter.h"
#include "libdtrain/autograd/parameters.h"
#include "libdtrain/autograd/tape.h"
#include "libdtrain/autograd/var.h"
#include "libdtrain/layers.h"
#include "libdtrain/ops/batch_norm.h"
#include "libdtrain/ops/bn_relu_max_pool.h"
#include "libdtrain/ops/concat_channels.h"
#include "libdtrain/ops/conv2d.h"
#include "libdtrain/ops/conv_bn_act.h"
#include "libdtrain/ops/conv_transpose2d.h"
#include "libdtrain/ops/drop_path.h"
#include "libdtrain/ops/gating.h"
#include "libdtrain/ops/group_norm.h"
#include "libdtrain/ops/inferred_conv.h"
#include "libdtrain/ops/local_response_norm.h"
#include "libdtrain/ops/loss.h"
#include "libdtrain/ops/matmul.h"
#include "libdtrain/ops/peaks.h"
#include "libdtrain/ops/pointwise.h"
#include "libdtrain/ops/pool.h"
#include "libdtrain/ops/relu6.h"
#include "libdtrain/ops/scalar_loss.h"
#include "libdtrain/ops/slice_rows.h"
#include "libdtrain/ops/subsample.h"
#include "libdtrain/ops/upsample.h"
#include "libdtrain/testing/array.h"
#include "libdtrain/testing/check_op.h"

using namespace dtrain;

struct Net {
  ConvBnAct stem;
  Conv2d conv;
  ConvTranspose2d up;
  BatchNorm norm;
  GroupNorm groups;
  Linear classifier;

  explicit Net(ParameterStore& store)
      : stem{{store, "stem", 3, 8, 3, {.conv = {.padding = 1}}}, {store, "stem_bn", 8}},
        conv(store, "conv", 8, 8, 3, {.conv = {.padding = 1}}),
        up(store, "up", 8, 8, 2, {.conv = {.stride = 2}}),
        norm(store, "norm", 8),
        groups(store, "groups", 8, 2),
        classifier(store, "classifier", 16, 10, Init::normal(0.1f)) {}

  Var operator()(Tape& tape, const Var& images) const {
    Var x = stem(tape, images);
    x = max_pool(tape, norm(tape, conv(tape, x), Activation::relu), {.kernel = 2, .stride = 2, .padding = 0});
    x = drop_path(tape, silu(tape, groups(tape, up(tape, x))), {.rate = 0.1f});
    x = local_response_norm(tape, relu6(tape, x), {.radius = 2});
    x = add_relu(tape, x, upsample_nearest(tape, subsample(tape, x, 2, 0), x.shape()[1], x.shape()[2]));
    x = concat_channels(
        tape, {mul(tape, x, sigmoid(tape, x)), average_pool(tape, x, {.kernel = 3, .stride = 1, .padding = 1})});
    return classifier(tape, dropout(tape, global_average_pool(tape, x), 0.1f));
  }
};

int main() {
  const auto context = make_cpu_context();
  ParameterStore store(*context);
  const Net net(store);
  store.allocate(/*seed=*/1);
  const Tensor images = to_device(*context, random_array({4, 8, 8, 3}, 1));
  const Tensor labels = to_device(*context, {4}, std::vector<int32_t>{1, 2, 3, 4});
  Tape tape(*context);
  size_t ops = 0;
  tape.op_watch().on_op([&](const RecordedOp&) { ++ops; });
  const Var logits = net(tape, tape.constant(images));
  const Classification result = softmax_cross_entropy(tape, logits, labels, {.label_smoothing = 0.1f});
  const Var loss = weighted_sum(tape, {result.loss, result.loss}, {0.5f, 0.5f});
  tape.backward(loss, &store);
  const double value = to_host(*context, loss.value)[0];
  std::printf("%zu ops, loss %.4f\n", ops, value);
  return std::isfinite(value) && ops > 15 ? 0 : 1;
}
