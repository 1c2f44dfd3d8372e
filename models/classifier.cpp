#include "dtrain/models/classifier.h"

#include "dtrain/ops/scalar_loss.h"

namespace dtrain::models {

Loss Classifier::loss(Tape& tape, const Var& x, const Tensor& labels, const SoftmaxCrossEntropyOptions& options) const {
  std::vector<Var> auxiliary;
  const Var logits = network(tape, x, tape.training() ? &auxiliary : nullptr);
  const Classification classified = softmax_cross_entropy(tape, logits, labels, options);
  Loss loss = classified;
  if (auxiliary.empty()) return loss;
  std::vector<Var> losses{classified.loss};
  for (const Var& head : auxiliary) losses.push_back(softmax_cross_entropy(tape, head, labels, options).loss);
  std::vector<float> weights(losses.size(), kAuxiliaryWeight);
  weights[0] = 1;
  loss.total = weighted_sum(tape, losses, weights);
  return loss;
}

}  // namespace dtrain::models
