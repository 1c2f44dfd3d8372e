#include "libdtrain/ops/anchor_targets.h"

#include <cmath>

#include "dtrain/ops/match_boxes.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

struct Written {
  std::vector<float> labels, drawn, objects, deltas, count;
};

Written targets_of(Context& context, int64_t n, const std::vector<int32_t>& matched, const std::vector<float>& truth,
                   const std::vector<float>& anchors, const BoxCoder& coder) {
  const auto t = static_cast<int64_t>(anchors.size() / 4), g = static_cast<int64_t>(truth.size() / 4) / n;
  poison(context);
  const AnchorTargets targets{context.empty({n, t}), context.empty({n, t}), context.empty({n, t}),
                              context.empty({n, t, 4}), context.empty({1})};
  anchor_targets(context, to_device(context, {n, t}, matched), to_device(context, {n, g, 4}, truth),
                 to_device(context, {t, 4}, anchors), coder, targets);
  return {values_of<float>(context, targets.labels), values_of<float>(context, targets.drawn),
          values_of<float>(context, targets.objects), values_of<float>(context, targets.deltas),
          values_of<float>(context, targets.count)};
}

TEST(AnchorTargets, SayWhatTheHeadsAreTrainedOn) {
  for (const auto& context : devices()) {
    const std::vector<float> anchors = {0, 0, 10, 20, 5, 5, 15, 15, 0, 0, 1, 1};
    const std::vector<float> truth = {1, 2, 9, 22, 5, 5, 25, 10, /* second image */ 0, 0, 30, 30, 0, 0, 0, 0};
    const Written w = targets_of(*context, 2, {0, 1, kBackground, kIgnored, 0, kBackground}, truth, anchors,
                                 {.wx = 2, .wy = 3, .ww = 4, .wh = 5});
    EXPECT_EQ(w.labels, (std::vector<float>{1, 1, 0, 0, 1, 0}));
    EXPECT_EQ(w.objects, w.labels);
    EXPECT_EQ(w.drawn, (std::vector<float>{1, 1, 1, 0, 1, 1}));
    EXPECT_EQ(w.count, std::vector<float>{5});
    const double expected[6][4] = {{0, 3.0 * 2 / 20, 4 * std::log(0.8), 0},
                                   {2 * 0.5, 3 * -0.25, 4 * std::log(2.0), 5 * std::log(0.5)},
                                   {},
                                   {},
                                   {2 * 0.5, 3 * 0.5, 4 * std::log(3.0), 5 * std::log(3.0)},
                                   {}};
    for (int i = 0; i < 24; ++i) EXPECT_NEAR(w.deltas[i], expected[i / 4][i % 4], 1e-6) << i;
  }
}

TEST(AnchorTargets, RefuseWhatDoesNotFit) {
  for (const auto& context : devices()) {
    const Tensor f = context->zeros({2, 3}), i = context->zeros({2, 3}, DType::i32);
    const AnchorTargets targets{f, f, f, context->zeros({2, 3, 4}), context->zeros({1})};
    const auto call = [&](const Tensor& matched, const Tensor& truth, const Tensor& anchors) {
      anchor_targets(*context, matched, truth, anchors, {}, targets);
    };
    const Tensor truth = context->zeros({2, 5, 4}), anchors = context->zeros({3, 4});
    expect_error([&] { call(i, truth, context->zeros({4, 4})); }, Fault::config, "expected [n, t]");
    expect_error([&] { call(f, truth, anchors); }, Fault::config, "expected i32");
    expect_error([&] { call(i, context->zeros({1, 5, 4}), anchors); }, Fault::config, "expected [n, t]");
  }
}

}  // namespace
}  // namespace dtrain
