// Update rules against their formulas in double precision and against PyTorch.
#include "dtrain/ops/update.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "dtrain/core/rng.h"
#include "tests/ops/update_fixture.h"

namespace dtrain {
namespace {

using update_tests::Arenas, update_tests::RuleCase, update_tests::compare_over_steps, update_tests::gradients,
    update_tests::padded_random;
using Values = std::vector<double>;

const std::vector<RuleCase>& rules() {
  static const std::vector<RuleCase> table{
      {"sgd", {.rule = UpdateRule::sgd}},
      {"momentum", {.rule = UpdateRule::momentum}},
      {"nesterov", {.rule = UpdateRule::nesterov}},
      {"adamw", {.rule = UpdateRule::adamw}},
      {"adam", {.rule = UpdateRule::adam}},
      {"rmsprop", {.rule = UpdateRule::rmsprop, .epsilon = 1e-3f}},
      {"lamb of biases", {.rule = UpdateRule::lamb}},
      {"sgd, clipped by value", {.rule = UpdateRule::sgd, .clip_value = 0.2f}},
      {"momentum, clipped by norm", {.rule = UpdateRule::momentum, .clip_norm = 0.5f}},
      {"momentum, norm below the limit", {.rule = UpdateRule::momentum, .clip_norm = 1e6f}},
  };
  return table;
}

TEST(Update, EveryRuleOverSeveralSteps) {
  const std::vector<UpdateSegment> small{{0, 70, 0.1f}, {128, 131, 0, -1, 0.3f}, {192, 300, 0.01f, -1, 2}};
  const std::vector<UpdateSegment> large{{0, 50000, 0.1f}, {50048, 70001, 0}};
  // Segments not aligned to groups of elements.
  const std::vector<UpdateSegment> odd{{1, 2, 0.1f}, {3, 4100, 0.1f}, {4102, 4107, 0}, {4108, 12301, 0.1f}};
  for (const auto& context : devices())
    for (const RuleCase& rule : rules()) {
      compare_over_steps(*context, rule, small, 320);
      compare_over_steps(*context, rule, large, 70016);
      compare_over_steps(*context, rule, odd, 12302);
    }
}

TEST(Update, Lars) {
  const RuleCase plain{"lars", {.rule = UpdateRule::lars, .trust = 0.02f}};
  const RuleCase clipped{"lars, clipped by norm", {.rule = UpdateRule::lars, .trust = 0.02f, .clip_norm = 0.5f}};
  for (const auto& context : devices())
    for (const RuleCase& rule : {plain, clipped}) {
      compare_over_steps(*context, rule, {{0, 70, 0.1f, 0}, {128, 131, 0, -1}, {192, 300, 0.01f, 2, 0.3f}}, 320);
      compare_over_steps(*context, rule, {{0, 50000, 0.1f, 0}, {50048, 70001, 0.1f, 1}}, 70016);
    }
}

TEST(Update, Lamb) {
  const RuleCase cases[] = {
      {"lamb", {.rule = UpdateRule::lamb, .epsilon = 1e-6f}},
      {"lamb, clipped by norm", {.rule = UpdateRule::lamb, .epsilon = 1e-3f, .clip_norm = 0.5f}},
      {"lamb, clipped by value", {.rule = UpdateRule::lamb, .epsilon = 1e-3f, .clip_value = 0.3f}}};
  for (const auto& context : devices())
    for (const RuleCase& rule : cases) {
      compare_over_steps(*context, rule, {{0, 70, 0.1f, 0}, {128, 131, 0, -1}, {192, 300, 0.01f, 2, 0.3f}}, 320);
      compare_over_steps(*context, rule, {{0, 50000, 0.1f, 0}, {50048, 70001, 0.1f, 1}}, 70016);
    }
}

// Local rates below and above the decreasing learning rate, initially 0.1.
TEST(Update, Larc) {
  const RuleCase cases[] = {
      {"clip", {.rule = UpdateRule::momentum, .trust = 0.02f, .larc = Larc::clip}},
      {"clip, trusting", {.rule = UpdateRule::nesterov, .trust = 0.2f, .larc = Larc::clip}},
      {"scale", {.rule = UpdateRule::sgd, .trust = 0.02f, .larc = Larc::scale}},
      {"clip, clipped by norm", {.rule = UpdateRule::nesterov, .trust = 0.02f, .larc = Larc::clip, .clip_norm = 0.5f}},
      {"joint clip",
       {.rule = UpdateRule::nesterov, .epsilon = 1, .trust = 0.013f, .larc = Larc::clip, .joint_norm = true}},
      {"joint scale, clipped by norm",
       {.rule = UpdateRule::nesterov, .trust = 0.02f, .larc = Larc::scale, .joint_norm = true, .clip_norm = 0.5f}}};
  for (const auto& context : devices())
    for (const RuleCase& rule : cases) {
      compare_over_steps(*context, rule, {{0, 70, 0.1f, 0}, {128, 131, 0, 1}, {192, 300, 0.01f, 2, 0.3f}}, 320);
      compare_over_steps(*context, rule, {{0, 50000, 0.1f, 0}, {50048, 70001, 0.1f, 1}}, 70016);
    }
}

// As in Apex a parameter with zero gradient does not decay; with a joint norm, epsilon replaces the rate.
TEST(Update, LarcWhereANormIsZero) {
  const auto step = [](Context& context, const UpdateOptions& options) {
    context.set_scalars({.learning_rate = 0.5f});
    Arenas arenas(context, options, {{0, 1, 0.1f, 0}, {1, 2, 0.1f, 1}, {2, 3, 0, 2}}, Array({3}, {0, 4, 4}));
    arenas.step(Array({3}, {3, 0, 0}));
    return to_host(context, arenas.values).values;
  };
  for (const auto& context : devices()) {
    EXPECT_EQ(step(*context, {.rule = UpdateRule::sgd, .larc = Larc::scale}), (Values{-1.5, 4, 4}));
    const Values joint = step(
        *context, {.rule = UpdateRule::sgd, .epsilon = 0.25f, .trust = 0.5f, .larc = Larc::clip, .joint_norm = true});
    EXPECT_FLOAT_EQ(static_cast<float>(joint[0]), -0.25f * 3);       // 0.25 / 0.5 of the gradient at rate 0.5
    EXPECT_FLOAT_EQ(static_cast<float>(joint[1]), 4 - 0.5f * 0.4f);  // decay only, at the plain rate
    EXPECT_EQ(joint[2], 4);
  }
}

TEST(Update, LambTakesThePlainRateWhereANormIsZero) {
  for (const auto& context : devices()) {
    context->set_scalars({.learning_rate = 0.5f});
    Arenas arenas(*context, {.rule = UpdateRule::lamb}, {{0, 1, 0.1f, 0}, {1, 2, 0, 1}}, Array({2}, {0, 4}));
    arenas.step(Array({2}, {3, 0}));
    expect_close(to_host(*context, arenas.values), Array({2}, {-0.5, 4}), 1e-6, "values");
    EXPECT_EQ(arenas.norm(3), 4);
    EXPECT_EQ(arenas.norm(4), 0);
  }
}

TEST(Update, LarsTakesThePlainRateWhereANormIsZero) {
  for (const auto& context : devices()) {
    context->set_scalars({.learning_rate = 0.5f});
    Arenas arenas(*context, {.rule = UpdateRule::lars}, {{0, 1, 0.1f, 0}, {1, 2, 0.1f, 1}}, Array({2}, {0, 4}));
    arenas.step(Array({2}, {3, 0}));
    EXPECT_EQ(to_host(*context, arenas.values)[0], -1.5);
    EXPECT_NEAR(to_host(*context, arenas.values)[1], 4 - 0.5 * 0.1 * 4, 1e-6);
  }
}

// Three steps of torch.optim 1.13 in double precision: learning rate 0.1, weight decay 0.01.
TEST(Update, AgreesWithPytorch) {
  const std::vector<std::pair<UpdateRule, Values>> expected{
      {UpdateRule::sgd, {0.982042969, -2.083985988, 0.499001299}},
      {UpdateRule::momentum, {0.946188769, -2.097687588, 0.066057199}},
      {UpdateRule::nesterov, {0.933731435, -2.171898314, 0.109601679}},
      {UpdateRule::adamw, {0.862917824, -2.027243716, 0.313774334}},
      {UpdateRule::adam, {0.858084401, -2.025772528, 0.314772057}},
  };
  const std::vector<Values> grads{{0.3, -0.1, 2.0}, {-0.2, 0.4, 1.0}, {0.05, 0.6, -3.0}};
  for (const auto& context : devices())
    for (const auto& [rule, values] : expected) {
      Arenas arenas(*context, {.rule = rule}, {{0, 3, 0.01f}}, Array({3}, {1, -2, 0.5}));
      for (size_t t = 0; t < 3; ++t) {
        context->set_scalars({.learning_rate = 0.1f, .step = t});
        arenas.step(Array({3}, grads[t]));
      }
      expect_close(to_host(*context, arenas.values), Array({3}, values), 1e-6, concat("rule ", static_cast<int>(rule)));
    }
}

// Three steps of Apex's LARC with SGD, of the LarcOptimizer of AWS's deep-learning-models and of TensorFlow Addons'
// LAMB, reimplemented in NumPy: learning rate 0.1, weight decay 0.01, LAMB's not on the second parameter.
TEST(Update, AgreesWithApexAwsAndTensorFlowAddons) {
  const UpdateOptions apex{.rule = UpdateRule::momentum, .trust = 0.02f, .larc = Larc::clip};
  UpdateOptions loose = apex, nesterov = apex, lamb{.rule = UpdateRule::lamb, .epsilon = 1e-6f};
  loose.trust = 0.2f;
  nesterov.rule = UpdateRule::nesterov;
  nesterov.larc = Larc::scale;
  const UpdateOptions aws{
      .rule = UpdateRule::nesterov, .epsilon = 1, .trust = 0.013f, .larc = Larc::clip, .joint_norm = true};
  UpdateOptions aws_scale = aws;
  aws_scale.larc = Larc::scale;
  const std::vector<std::pair<UpdateOptions, Values>> expected{
      {apex, {0.995019773, -2.03067782, 0.344894544, 0.240411406}},
      {loose, {0.946188769, -2.09768759, 0.0660571995, 0.112955203}},
      {nesterov, {0.999552393, -2.00492739, 0.481874702, 0.248616476}},
      {aws, {0.997226735, -2.03254519, 0.380427711, 0.241306995}},
      {aws_scale, {0.999730942, -2.00327926, 0.488016546, 0.249144054}},
      {lamb, {0.781851246, -2.17640245, 0.211274809, 0.0387819295}},
  };
  const std::vector<Values> grads{{0.3, -0.1, 2.0, 0.5}, {-0.2, 0.4, 1.0, -0.1}, {0.05, 0.6, -3.0, 0.2}};
  for (const auto& context : devices())
    for (size_t i = 0; i < expected.size(); ++i) {
      const auto& [options, values] = expected[i];
      const bool larc = options.larc != Larc::none;
      Arenas arenas(*context, options, {{0, 3, 0.01f, 0}, {3, 4, larc ? 0.01f : 0, larc ? 1 : -1}},
                    Array({4}, {1, -2, 0.5, 0.25}));
      for (size_t t = 0; t < 3; ++t) {
        context->set_scalars({.learning_rate = 0.1f, .step = t});
        arenas.step(Array({4}, grads[t]));
      }
      expect_close(to_host(*context, arenas.values), Array({4}, values), 1e-6, concat("case ", i));
    }
}

// As TensorFlow's ExponentialMovingAverage; skipped updates do not count.
TEST(Update, KeepsAMovingAverage) {
  const std::vector<UpdateSegment> segments{{0, 5000}, {5001, 5006}};
  for (const auto& context : devices())
    for (const bool warmup : {false, true}) {
      const Array initial = padded_random(5010, segments, 1);
      UpdateOptions options{.rule = UpdateRule::sgd, .average_decay = 0.3f, .average_warmup = warmup};
      Arenas arenas(*context, options, segments, initial);
      arenas.average = to_device(*context, padded_random(5010, segments, 2));
      Array expected = padded_random(5010, segments, 2);
      context->set_step_state({.loss_scale = 1, .double_after = 100});
      int t = 0;
      for (uint64_t step = 0; step < 5; ++step) {
        Array grads = gradients(5010, segments, 10 + step);
        if (step == 2) grads[4000] = NAN;
        const float scale = context->get_scalars().loss_scale;  // irrelevant here
        context->set_scalars({.learning_rate = 0.1f, .gradient_scale = scale, .step = step});
        arenas.step(grads);
        if (step == 2) continue;
        ++t;
        const double decay = warmup ? std::min(double{0.3f}, (1.0 + t) / (10.0 + t)) : double{0.3f};
        const Array values = to_host(*context, arenas.values);
        for (int64_t i = 0; i < values.count(); ++i) expected[i] -= (1 - decay) * (expected[i] - values[i]);
      }
      expect_close(to_host(*context, arenas.average), expected, 1e-6, "average");
      EXPECT_EQ(context->get_scalars().skipped, 1u);
    }
}

TEST(Update, L2LossIsTheWeightedSumOfSquares) {
  RandomStream random(5, 0);
  Array initial({100000});
  for (double& value : initial.values) value = static_cast<double>(static_cast<float>(random.normal()));
  const std::vector<UpdateSegment> segments = {{0, 70001, 1e-4f}, {70016, 80000, 0}, {80000, 99999, 5e-5f}};
  double expected = 0;
  for (const UpdateSegment& segment : segments)
    for (int64_t i = segment.begin; i < segment.end; ++i)
      expected += static_cast<double>(segment.weight_decay) / 2 * initial[i] * initial[i];
  for (const auto& context : devices()) {
    const Tensor values = to_device(*context, initial), loss = context->zeros({1});
    l2_loss(*context, {*context, segments}, values, loss);
    EXPECT_FLOAT_EQ(static_cast<float>(to_host(*context, loss)[0]), static_cast<float>(expected));
    expect_error(
        [&] {
          l2_loss(*context, {*context, {{0, 100001, 1}}}, values, loss);
        },
        Fault::config, "100001) of 100000");
  }
  float of_threads[2];
  for (int threads : {1, 2}) {
    const auto context = make_cpu_context({.threads = threads});
    const Tensor values = to_device(*context, initial), loss = context->zeros({1});
    l2_loss(*context, {*context, segments}, values, loss);
    of_threads[threads - 1] = *loss.data<float>();
  }
  EXPECT_EQ(of_threads[0], of_threads[1]);
}

TEST(Update, NormIsOfTheScaledGradientBeforeClipping) {
  for (const auto& context : devices()) {
    context->set_scalars({.learning_rate = 1, .gradient_scale = 0.5f});
    // Elements outside of the segments do not count.
    Arenas arenas(*context, {.rule = UpdateRule::sgd, .clip_norm = 1}, {{0, 1}, {2, 3}}, Array({4}, 0));
    arenas.step(Array({4}, {6, 100, 8, 100}));
    EXPECT_FLOAT_EQ(static_cast<float>(arenas.norm(0)), 5.0f);
    expect_close(to_host(*context, arenas.values), Array({4}, {-0.6, 0, -0.8, 0}), 1e-6, "values");
  }
}

TEST(Update, AGradientThatIsNotFiniteStopsAllUpdates) {
  for (const auto& context : devices())
    for (const double bad : {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(),
                             std::numeric_limits<double>::quiet_NaN()})
      for (const int64_t where : {int64_t{0}, int64_t{69}, int64_t{69999}}) {
        const Array initial = random_array({70000}, 1);
        Arenas arenas(*context, {.rule = UpdateRule::momentum, .clip_value = 1}, {{0, 70, 0.1f}, {70, 70000}}, initial);
        context->set_scalars({.learning_rate = 0.1f});
        context->set_step_state({});
        Array grads = random_array({70000}, 2);
        grads[where] = bad;
        arenas.step(grads);
        EXPECT_EQ(context->get_scalars().finite, 0);
        EXPECT_FALSE(std::isfinite(arenas.norm(0)));
        // Sticky: a later step with finite gradients is not applied either.
        arenas.step(random_array({70000}, 3));
        EXPECT_EQ(to_host(*context, arenas.values).values, initial.values);
        EXPECT_EQ(to_host(*context, arenas.state[0]).values, Values(70000, 0));
      }
}

TEST(Update, IsBitEqualFromRunToRun) {
  auto run = [](Context& context, const UpdateOptions& options) {
    context.set_scalars({.learning_rate = 0.1f});
    Arenas arenas(context, options, {{0, 100003, 0.1f, adapts(options) ? 0 : -1}}, random_array({100003}, 1));
    arenas.step(random_array({100003}, 2));
    return to_host(context, arenas.values).values;
  };
  for (const auto& context : devices())
    for (const UpdateOptions& options :
         {UpdateOptions{.rule = UpdateRule::lars}, UpdateOptions{.rule = UpdateRule::lamb},
          UpdateOptions{.larc = Larc::clip, .joint_norm = true}, UpdateOptions{.clip_norm = 0.1f}})
      EXPECT_EQ(run(*context, options), run(*context, options));
}

TEST(Update, BothArmsAgree) {
  const std::vector<UpdateSegment> segments{{0, 9000, 0.1f, 0}, {9024, 9025, 0}, {9088, 20001, 0.01f, 1}};
  const auto run = [&](Context& context, const UpdateOptions& options) {
    Arenas arenas(context, options, segments, padded_random(20032, segments, 1));
    for (uint64_t t = 0; t < 3; ++t) {
      context.set_scalars({.learning_rate = 0.1f, .gradient_scale = 0.3f, .step = t});
      arenas.step(gradients(20032, segments, 10 + t));
    }
    std::vector<Array> result{to_host(context, arenas.values), to_host(context, arenas.norms)};
    for (const Tensor& state : arenas.state) result.push_back(to_host(context, state));
    return result;
  };
  const auto cpu = make_cpu_context();
  for (const auto& context : devices())
    for (int rule = 0; rule <= static_cast<int>(UpdateRule::lamb) + 1; ++rule) {
      UpdateOptions options{.rule = static_cast<UpdateRule>(rule), .epsilon = 1e-3f};
      if (rule > static_cast<int>(UpdateRule::lamb))
        options = {.trust = 0.02f, .larc = Larc::clip, .joint_norm = true, .clip_norm = 20};
      const auto expected = run(*cpu, options), actual = run(*context, options);
      // Compilers may contract to FMA.
      for (size_t i = 0; i < expected.size(); ++i)
        expect_close(actual[i], expected[i], 3e-7, concat("rule ", rule, ", result ", i));
    }
}

TEST(Update, WritesTheValuesRoundedToTheCopy) {
  const std::vector<UpdateSegment> segments{{0, 5000, 0.1f}, {5001, 5006, 0}, {5008, 9003, 0}};
  for (const auto& context : devices()) {
    for (const RuleCase& rule : rules())
      for (const DType dtype : {DType::bf16, DType::f16}) {
        if (context->is_cpu() && dtype == DType::f16) continue;
        Arenas arenas(*context, rule.options, segments, padded_random(9008, segments, 1));
        arenas.copy = to_device(*context, Array({9008}, 7), dtype);
        context->set_scalars({.learning_rate = 0.1f});
        arenas.step(gradients(9008, segments, 2));
        Array expected = rounded(to_host(*context, arenas.values), dtype);
        for (const int64_t outside : {5000, 5006, 5007, 9003, 9004, 9005, 9006, 9007}) expected[outside] = 7;
        EXPECT_EQ(to_host(*context, arenas.copy).values, expected.values) << rule.name;
      }
  }
}

TEST(Update, RefusesWhatDoesNotFit) {
  const auto context = make_cpu_context();
  auto step = [&](const UpdateOptions& options, const UpdateSegment& segment, int64_t states, int64_t norms) {
    return [=, &context] {
      const std::vector<Tensor> state(static_cast<size_t>(states), context->zeros({64}));
      const UpdateArenas arenas{context->zeros({64}), context->zeros({64}), state};
      update(*context, options, {*context, {segment}}, arenas, context->zeros({norms}));
    };
  };
  expect_error(step({}, {0, 64}, 2, 1), Fault::config, "2 arenas of state; the rule needs 1");
  expect_error(step({}, {0, 65}, 1, 1), Fault::config, "[0, 65) of 64");
  expect_error(step({.rule = UpdateRule::lars}, {0, 64, 0, 1}, 1, 3), Fault::config, "norms of parameter 1");
  expect_error(step({.clip_value = 1, .clip_norm = 1}, {0, 64}, 1, 1), Fault::config, "clipping by value");
  expect_error(step({.rule = UpdateRule::lars, .clip_value = 1}, {0, 64}, 1, 1), Fault::config, "clipping by value");
  expect_error(step({.larc = Larc::clip, .clip_value = 1}, {0, 64}, 1, 1), Fault::config, "clipping by value");
  expect_error(step({.rule = UpdateRule::lars, .larc = Larc::clip}, {0, 64}, 1, 1), Fault::config,
               "LARC goes with SGD");
}

}  // namespace
}  // namespace dtrain
