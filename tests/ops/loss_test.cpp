// Softmax cross-entropy against its definition in double precision.
#include "dtrain/ops/loss.h"

#include <algorithm>
#include <cmath>

#include "tests/testing.h"

namespace dtrain {
namespace {

using Vars = std::vector<Var>;
using Arrays = std::vector<Array>;
using Labels = std::vector<int32_t>;
using Values = std::vector<double>;

// -sum over classes of target * log(softmax), per row; 0 for a masked one.
Values naive_rows(const Array& logits, const Labels& labels, double smoothing) {
  const int64_t classes = logits.dim(1);
  Values rows;
  for (int64_t n = 0; n < logits.dim(0); ++n) {
    const int32_t label = labels[static_cast<size_t>(n)];
    double sum = 0, loss = 0;
    for (int64_t c = 0; c < classes; ++c) sum += std::exp(logits[n * classes + c]);
    for (int64_t c = 0; c < classes; ++c) {
      const double target = (c == label ? 1 - smoothing : 0) + smoothing / static_cast<double>(classes);
      loss -= target * (logits[n * classes + c] - std::log(sum));
    }
    rows.push_back(label < 0 ? 0 : loss);
  }
  return rows;
}

Array naive_loss(const Array& logits, const Labels& labels, double smoothing) {
  double sum = 0, count = 0;
  for (double row : naive_rows(logits, labels, smoothing)) sum += row;
  for (int32_t label : labels) count += label >= 0;
  return Array({1}, sum / count);
}

Tensor upload(Context& context, const Labels& labels) {
  return to_device(context, {static_cast<int64_t>(labels.size())}, labels);
}

OpCase loss_case(const Labels& labels, int64_t classes, float smoothing) {
  const Shape shape{static_cast<int64_t>(labels.size()), classes};
  return {.name = concat("softmax_cross_entropy ", shape, ", smoothing ", smoothing),
          .inputs = {random_array(shape, 1, -3, 3)},
          .op =
              [=](Tape& t, const Vars& v) {
                return softmax_cross_entropy(t, v[0], upload(t.context(), labels), {.label_smoothing = smoothing}).loss;
              },
          .reference = [=](const Arrays& a) { return naive_loss(a[0], labels, static_cast<double>(smoothing)); }};
}

TEST(Loss, ValueAndGradient) {
  Labels many;
  for (int32_t i = 0; i < 40; ++i) many.push_back(i % 7 == 6 ? -1 : i * 31 % 100);
  check_op({loss_case({1}, 2, 0), loss_case({0, 2, 1}, 3, 0), loss_case({0, 2, 1}, 3, 0.1f),
            loss_case({4, -1, 0, -1, 3}, 5, 0.2f), loss_case(many, 100, 0), loss_case(many, 100, 0.1f)});
}

// Mean of two cross-entropies, weighted by the labels' shares.
struct MixedLabels {
  Labels own, partners;
  std::vector<float> shares;

  Labels of_partners() const {
    Labels labels;
    for (size_t row = 0; row < own.size(); ++row) {
      const auto partner = static_cast<size_t>(partners[row]);
      const bool has_one = own[row] >= 0 && partner < own.size() && own[partner] >= 0;
      labels.push_back(has_one ? own[partner] : own[row]);
    }
    return labels;
  }
  SoftmaxCrossEntropyOptions options(Context& context, float smoothing) const {
    return {.label_smoothing = smoothing,
            .partners = upload(context, partners),
            .shares = to_device(context, {static_cast<int64_t>(shares.size())}, shares)};
  }
};

Values naive_mixed_rows(const Array& logits, const MixedLabels& labels, double smoothing) {
  const Values own = naive_rows(logits, labels.own, smoothing);
  const Values other = naive_rows(logits, labels.of_partners(), smoothing);
  Values rows;
  for (size_t row = 0; row < own.size(); ++row)
    rows.push_back(double{labels.shares[row]} * own[row] + (1 - double{labels.shares[row]}) * other[row]);
  return rows;
}

OpCase mixed_case(const MixedLabels& labels, int64_t classes, float smoothing) {
  const Shape shape{static_cast<int64_t>(labels.own.size()), classes};
  return {.name = concat("softmax_cross_entropy ", shape, " of mixed labels, smoothing ", smoothing),
          .inputs = {random_array(shape, 1, -3, 3)},
          .op =
              [=](Tape& t, const Vars& v) {
                return softmax_cross_entropy(t, v[0], upload(t.context(), labels.own),
                                             labels.options(t.context(), smoothing))
                    .loss;
              },
          .reference =
              [=](const Arrays& a) {
                double sum = 0, count = 0;
                for (double row : naive_mixed_rows(a[0], labels, static_cast<double>(smoothing))) sum += row;
                for (int32_t label : labels.own) count += label >= 0;
                return Array({1}, sum / count);
              }};
}

// Partners: another row, itself, a masked one, one of the same label, one out of range; shares around one half.
const MixedLabels kMixed{{2, 0, -1, 2, 1, 3}, {1, 1, 0, 2, 0, 9}, {0.25f, 0.5f, 0.5f, 0.25f, 0.75f, 0}};

TEST(Loss, OfMixedLabels) {
  MixedLabels many;
  for (int32_t i = 0; i < 40; ++i) {
    many.own.push_back(i % 7 == 6 ? -1 : i * 31 % 300);
    many.partners.push_back((i + 39) % 40);
    many.shares.push_back(static_cast<float>(i % 9) / 8);
  }
  check_op(
      {mixed_case(kMixed, 4, 0), mixed_case(kMixed, 7, 0.1f), mixed_case(many, 300, 0), mixed_case(many, 300, 0.1f)});
}

TEST(Loss, TheMainLabelCountsAsHit) {
  for (const auto& context : devices()) {
    const Array logits({4, 3}, {0, 9, 1, 0, 9, 1, 9, 0, 1, 9, 0, 1});
    const MixedLabels labels{{0, 1, 0, 1}, {1, 0, 3, 2}, {0.25f, 0.75f, 0.5f, 0.25f}};
    Tape tape(*context);
    const Classification result = softmax_cross_entropy(tape, tape.constant(to_device(*context, logits)),
                                                        upload(*context, labels.own), labels.options(*context, 0));
    EXPECT_EQ(to_host(*context, result.in_top_1).values, (Values{1, 1, 1, 1}));
    expect_close(to_host(*context, result.rows), Array({4}, naive_mixed_rows(logits, labels, 0)), 1e-6, "rows");
  }
}

// Rows, classes, both or neither are multiples of the block size.
TEST(Loss, ManyClasses) {
  check_op({loss_case({999, -1, 0}, 1000, 0.1f), loss_case({1000, 5}, 1001, 0), loss_case({21840}, 21841, 0.1f)});
}

TEST(Loss, ManyRows) {
  constexpr int32_t kRows = 4099, kClasses = 10;  // more rows than an emulated GPU has warps
  for (const auto& context : devices()) {
    const Array logits = random_array({kRows, kClasses}, 1, -3, 3);
    Labels labels;
    for (int32_t row = 0; row < kRows; ++row) labels.push_back(row % 11 - 1);
    poison(*context);
    Tape tape(*context);
    const Var x = tape.variable(to_device(*context, logits));
    const Classification result = softmax_cross_entropy(tape, x, upload(*context, labels));
    expect_close(to_host(*context, result.loss.value), naive_loss(logits, labels, 0), 1e-6, "loss");
    expect_close(to_host(*context, result.rows), Array({kRows}, naive_rows(logits, labels, 0)), 1e-6, "rows");
    tape.backward(result.loss);
    Array gradient({kRows, kClasses});
    const double counted = std::count_if(labels.begin(), labels.end(), [](int32_t label) { return label >= 0; });
    for (int64_t row = 0; row < kRows; ++row) {
      if (labels[static_cast<size_t>(row)] < 0) continue;
      double sum = 0;
      for (int64_t c = 0; c < kClasses; ++c) sum += std::exp(logits[row * kClasses + c]);
      for (int64_t c = 0; c < kClasses; ++c)
        gradient[row * kClasses + c] = (std::exp(logits[row * kClasses + c]) / sum - (c == row % 11 - 1)) / counted;
    }
    expect_close(to_host(*context, tape.grad(x)), gradient, 1e-6, "gradient");
  }
}

// A GPU cannot throw: it reads nothing out of bounds, and the NaN reveals the failed step.
TEST(Loss, ALabelBeyondTheClassesIsNanOnAGpu) {
  for (const auto& context : devices())
    for (const int64_t classes : {7, 300}) {
      if (context->is_cpu()) continue;
      Tape tape(*context);
      const Var logits = tape.variable(to_device(*context, random_array({2, classes}, 1)));
      const Labels labels{static_cast<int32_t>(classes), 1};
      const Classification result = softmax_cross_entropy(tape, logits, upload(*context, labels));
      tape.backward(result.loss);
      EXPECT_TRUE(std::isnan(to_host(*context, result.loss.value)[0]));
      EXPECT_EQ(to_host(*context, result.in_top_5)[0], 0);
      const Array gradient = to_host(*context, tape.grad(logits));
      EXPECT_TRUE(std::isnan(gradient[0]));
      EXPECT_FALSE(std::isnan(gradient[classes]));
    }
}

TEST(Loss, RowsAndRanks) {
  for (const auto& context : devices()) {
    const Array logits({5, 7}, {
                                   1, 9, 2, 3, 4, 5, 6,  // label 1: rank 0
                                   1, 9, 2, 3, 4, 5, 6,  // label 3: rank 4, in the top 5
                                   1, 9, 2, 3, 4, 5, 6,  // label 2: rank 5
                                   8, 8, 8, 8, 8, 8, 8,  // label 0 among equals: the lower class first
                                   1, 9, 2, 3, 4, 5, 6,  // masked
                               });
    const Labels labels{1, 3, 2, 0, -1};
    poison(*context);
    Tape tape(*context);
    const Classification result =
        softmax_cross_entropy(tape, tape.constant(to_device(*context, logits)), upload(*context, labels));
    EXPECT_EQ(to_host(*context, result.in_top_1).values, (Values{1, 0, 0, 1, 0}));
    EXPECT_EQ(to_host(*context, result.in_top_5).values, (Values{1, 1, 0, 1, 0}));
    expect_close(to_host(*context, result.rows), Array({5}, naive_rows(logits, labels, 0)), 1e-6, "rows");
    Tape again(*context);
    const Classification other =
        softmax_cross_entropy(again, again.constant(to_device(*context, logits)), upload(*context, {1, 3, 2, 6, 5}));
    EXPECT_EQ(to_host(*context, other.in_top_1).values, (Values{1, 0, 0, 0, 0}));
    EXPECT_EQ(to_host(*context, other.in_top_5).values, (Values{1, 1, 0, 0, 1}));
  }
}

TEST(Loss, WithFewerThanFiveClassesEveryFiniteLabelIsInTheFirstFive) {
  for (const auto& context : devices()) {
    Tape tape(*context);
    const Tensor logits = to_device(*context, Array({2, 3}, {3, 2, 1, 1, 2, std::nan("")}));
    const Classification result = softmax_cross_entropy(tape, tape.constant(logits), upload(*context, {2, 2}));
    EXPECT_EQ(to_host(*context, result.in_top_5).values, (Values{1, 0}));
    EXPECT_FALSE(std::isnan(to_host(*context, result.rows)[0]));
    EXPECT_TRUE(std::isnan(to_host(*context, result.loss.value)[0]));
  }
}

TEST(Loss, LargeLogitsNeitherOverflowNorVanish) {
  for (const auto& context : devices()) {
    Tape tape(*context);
    const Var logits = tape.variable(to_device(*context, Array({2, 2}, {20000, 0, -20000, 0})));
    const Classification result = softmax_cross_entropy(tape, logits, upload(*context, {0, 0}));
    expect_close(to_host(*context, result.rows), Array({2}, {0, 20000}), 1e-6, "rows");
    tape.backward(result.loss);
    expect_close(to_host(*context, tape.grad(logits)), Array({2, 2}, {0, 0, -0.5, 0.5}), 1e-6, "gradient");
  }
}

TEST(Loss, TheLargestLogitMayBeAnywhereInALongRow) {
  for (const auto& context : devices())
    for (const int64_t place : {0, 31, 32, 255, 256, 299}) {
      Array logits({1, 300});
      logits[place] = 20000;
      Tape tape(*context);
      const Var x = tape.constant(to_device(*context, logits));
      const Classification result = softmax_cross_entropy(tape, x, upload(*context, {100}));
      expect_close(to_host(*context, result.rows), Array({1}, 20000), 1e-6, concat("largest at ", place));
    }
}

TEST(Loss, ABatchThatIsAllMaskedHasNoLossAndNoGradient) {
  for (const auto& context : devices()) {
    Tape tape(*context);
    const Var logits = tape.variable(to_device(*context, random_array({2, 3}, 1)));
    const Classification result = softmax_cross_entropy(tape, logits, upload(*context, {-1, -1}));
    tape.backward(result.loss);
    EXPECT_EQ(to_host(*context, result.loss.value)[0], 0);
    EXPECT_EQ(to_host(*context, tape.grad(logits)).values, Values(6, 0));
  }
}

TEST(Loss, Softmax) {
  for (const auto& context : devices()) {
    const Array logits = random_array({3, 11}, 1, -5, 5);
    Array expected(logits.shape);
    for (int64_t n = 0; n < 3; ++n) {
      double sum = 0;
      for (int64_t c = 0; c < 11; ++c) sum += std::exp(logits[n * 11 + c]);
      for (int64_t c = 0; c < 11; ++c) expected[n * 11 + c] = std::exp(logits[n * 11 + c]) / sum;
    }
    expect_close(to_host(*context, softmax(*context, to_device(*context, logits))), expected, 1e-6, "softmax");
  }
}

TEST(Loss, RefusesWhatDoesNotFit) {
  const auto context = make_cpu_context();
  Tape tape(*context);
  const Var logits = tape.constant(context->zeros({2, 3}));
  auto loss = [&](const Tensor& labels, float smoothing) {
    return [&, labels, smoothing] { softmax_cross_entropy(tape, logits, labels, {.label_smoothing = smoothing}); };
  };
  expect_error(loss(upload(*context, {0, 3}), 0), Fault::config, "label 3 in row 1: the logits have 3 classes");
  expect_error(loss(upload(*context, {0}), 0), Fault::config, "labels [2]");
  expect_error(loss(context->zeros({2}), 0), Fault::config, "of type f32");
  expect_error(loss(upload(*context, {0, 1}), 1), Fault::config, "smoothing 1");
  expect_error([&] { softmax(*context, context->zeros({3})); }, Fault::config, "[3]");
}

}  // namespace
}  // namespace dtrain
