// Hard negative mining against its definition in double precision.
#include "dtrain/ops/mined_cross_entropy.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/testing.h"

namespace dtrain {
namespace {

// Losses of all rows of logits [n, t, c].
std::vector<double> row_losses(const Array& logits, const std::vector<int32_t>& labels) {
  const int64_t c = logits.dim(2);
  std::vector<double> losses;
  for (int64_t row = 0; row < logits.count() / c; ++row) {
    double sum = 0;
    for (int64_t i = 0; i < c; ++i) sum += std::exp(logits[row * c + i]);
    losses.push_back(std::log(sum) - logits[row * c + labels[static_cast<size_t>(row)]]);
  }
  return losses;
}

// By sorting the negatives' losses, as tf_cnn_benchmarks does.
Array naive_mined(const Array& logits, const std::vector<int32_t>& labels, int64_t per_positive) {
  const int64_t n = logits.dim(0), t = logits.dim(1);
  const std::vector<double> losses = row_losses(logits, labels);
  double total = 0;
  for (int64_t image = 0; image < n; ++image) {
    std::vector<double> negatives;
    double sum = 0;
    int64_t positives = 0;
    for (int64_t i = image * t; i < (image + 1) * t; ++i) {
      const auto at = static_cast<size_t>(i);
      if (labels[at] > 0)
        sum += losses[at], ++positives;
      else
        negatives.push_back(losses[at]);
    }
    if (positives == 0) continue;
    std::ranges::sort(negatives, std::greater<>());
    const auto mined = std::min(static_cast<size_t>(per_positive * positives), negatives.size());
    sum = std::accumulate(negatives.begin(), negatives.begin() + static_cast<std::ptrdiff_t>(mined), sum);
    total += sum / static_cast<double>(positives);
  }
  Array loss({1});
  loss[0] = total / static_cast<double>(n);
  return loss;
}

OpCase mined_case(const std::string& name, Shape shape, const std::vector<int32_t>& labels, int per_positive) {
  return {.name = name,
          .inputs = {random_array(shape, 3, -2, 2)},
          .op =
              [=](Tape& tape, const std::vector<Var>& x) {
                return mined_cross_entropy(tape, x[0], to_device(tape.context(), {shape[0], shape[1]}, labels),
                                           per_positive)
                    .loss;
              },
          .reference = [=](const std::vector<Array>& x) { return naive_mined(x[0], labels, per_positive); },
          .f32_only = true};
}

TEST(MinedCrossEntropy, IsItsDefinition) {
  const std::vector<int32_t> few = {0, 2, 0, 0, 0, 0, 0, 0, 0, 0, /* second image */ 0, 0, 1, 0, 0, 3, 0, 0, 0, 0};
  check_op({mined_case("three negatives per positive", {2, 10, 4}, few, 3),
            mined_case("fewer negatives than wanted", {2, 10, 4}, few, 7),
            mined_case("no negatives", {2, 10, 4}, few, 0),
            mined_case("an image without objects", {2, 3, 5}, {0, 0, 0, 0, 4, 0}, 1)});
}

TEST(MinedCrossEntropy, WeighsByThePositivesOfAnImage) {
  for (const auto& context : devices()) {
    // A negative's loss grows with its second logit.
    const Tensor logits = to_device(*context, {1, 6, 2}, std::vector<float>{0, 1, 0, 5, 0, 3, 0, 3, 0, 2, 0, 3});
    poison(*context);
    Tape tape(*context);
    const MinedCrossEntropy mined = mined_cross_entropy(
        tape, tape.variable(logits), to_device(*context, {1, 6}, std::vector<int32_t>{1, 0, 0, 0, 0, 0}), 2);
    EXPECT_EQ(values_of<float>(*context, mined.weights), (std::vector<float>{1, 1, 1, 0, 0, 0}));
    EXPECT_EQ(values_of<float>(*context, mined.positives), (std::vector<float>{1, 0, 0, 0, 0, 0}));
  }
}

TEST(MinedCrossEntropy, RefuseWhatDoesNotFit) {
  for (const auto& context : devices()) {
    Tape tape(*context);
    const Var logits = tape.variable(context->zeros({2, 3, 4}));
    expect_error([&] { mined_cross_entropy(tape, logits, context->zeros({2, 3}), 3); }, Fault::config, "of i32");
    expect_error(
        [&] {
          mined_cross_entropy(tape, logits, context->zeros({2, 3}, DType::i32), -1);
        },
        Fault::config, "negatives per positive");
  }
}

}  // namespace
}  // namespace dtrain
