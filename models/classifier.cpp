#include "dtrain/models/classifier.h"

#include <algorithm>

#include "dtrain/ops/masked_losses.h"
#include "dtrain/ops/scalar_loss.h"

namespace dtrain::models {

namespace {

// The loss of the logits, and with weight kAuxiliaryWeight those of the auxiliary heads.
Var with_auxiliary(Tape& tape, const Var& loss, const std::vector<Var>& auxiliary,
                   const std::function<Var(const Var& logits)>& loss_of) {
  if (auxiliary.empty()) return loss;
  std::vector<Var> losses{loss};
  for (const Var& head : auxiliary) losses.push_back(loss_of(head));
  std::vector<float> weights(losses.size(), kAuxiliaryWeight);
  weights[0] = 1;
  return weighted_sum(tape, losses, weights);
}

}  // namespace

Loss Classifier::loss(Tape& tape, const Var& x, const Tensor& labels, const SoftmaxCrossEntropyOptions& options) const {
  std::vector<Var> auxiliary;
  const Var logits = network(tape, x, tape.training() ? &auxiliary : nullptr);
  const Classification classified = softmax_cross_entropy(tape, logits, labels, options);
  Loss loss = classified;
  loss.total = with_auxiliary(tape, classified.loss, auxiliary,
                              [&](const Var& head) { return softmax_cross_entropy(tape, head, labels, options).loss; });
  return loss;
}

Loss Classifier::loss(Tape& tape, const Var& x, const MultiLabelTargets& targets, Tensor* logits) const {
  std::vector<Var> auxiliary;
  const Var outputs = network(tape, x, tape.training() ? &auxiliary : nullptr);
  if (logits != nullptr) *logits = outputs.value;
  const LossDivisor mean{.constant = static_cast<float>(std::max<int64_t>(targets.rows, 1) * classes)};
  const auto loss_of = [&](const Var& head) {
    return sigmoid_cross_entropy(tape, head, targets.targets, targets.row_weights, mean);
  };
  return with_auxiliary(tape, loss_of(outputs), auxiliary, loss_of);
}

}  // namespace dtrain::models
