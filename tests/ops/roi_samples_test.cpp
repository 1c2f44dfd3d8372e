// Sampled regions and positive rows, against loops over all boxes.
#include "dtrain/ops/roi_samples.h"

#include <cmath>

#include "tests/testing.h"

namespace dtrain {
namespace {

using Floats = std::vector<float>;
using Indices = std::vector<int32_t>;

RoiSamples empty_samples(const Context& context, int64_t rows) {
  return {.rois = context.empty({rows, 4}),
          .images = context.empty({rows}, DType::i32),
          .classes = context.empty({rows}, DType::i32),
          .truth = context.empty({rows}, DType::i32),
          .deltas = context.empty({rows, 4}),
          .totals = context.empty({2})};
}

TEST(RoiSamples, SmallExample) {
  const Floats boxes{0, 0, 4, 4, 1, 1, 5, 5, 2, 2, 6, 6, 3, 3, 7, 7, 0, 0, 8, 8, 1, 1, 9, 9, 2, 2, 4, 4, 3, 3, 5, 5};
  const Floats truth{0, 0, 4, 4, 1, 3, 5, 7, 0, 0, 0, 0, 2, 2, 6, 6};
  for (const auto& context : devices()) {
    poison(*context);
    const RoiSamples samples = empty_samples(*context, 6);
    gather_samples(*context, to_device(*context, {2, 4, 4}, boxes),
                   to_device<int32_t>(*context, {2, 4}, {-1, 1, -2, 0, -2, -1, -2, 2}),
                   to_device(*context, {2, 2, 4}, truth), to_device<int32_t>(*context, {2, 2}, {7, 9, 0, 3}), {},
                   samples);
    EXPECT_EQ(values_of<float>(*context, samples.rois),
              (Floats{1, 1, 5, 5, 3, 3, 7, 7, 0, 0, 4, 4, 1, 1, 9, 9, 0, 0, 0, 0, 0, 0, 0, 0}));
    EXPECT_EQ(values_of<int32_t>(*context, samples.images), (Indices{0, 0, 0, 1, -1, -1}));
    EXPECT_EQ(values_of<int32_t>(*context, samples.classes), (Indices{9, 7, 0, 0, -1, -1}));
    EXPECT_EQ(values_of<int32_t>(*context, samples.truth), (Indices{1, 0, -1, -1, -1, -1}));
    EXPECT_EQ(values_of<float>(*context, samples.totals), (Floats{4, 2}));
    const Floats deltas = values_of<float>(*context, samples.deltas);
    EXPECT_EQ(Floats(deltas.begin(), deltas.begin() + 8), (Floats{0, 0.5, 0, 0, -0.75, -0.75, 0, 0}));
    EXPECT_EQ(Floats(deltas.begin() + 8, deltas.end()), Floats(16));
  }
}

// Boxes that become rows, by the definition: positives, then background, in order.
Indices naive_rows(const Indices& matched, int64_t first, int64_t t, int64_t g, size_t s) {
  Indices rows;
  for (const bool positive : {true, false})
    for (int64_t i = 0; i < t; ++i) {
      const int32_t m = matched[static_cast<size_t>(first + i)];
      if ((positive ? m >= 0 && m < g : m == kBackground) && rows.size() < s) rows.push_back(static_cast<int32_t>(i));
    }
  return rows;
}

TEST(RoiSamples, ManyBoxes) {
  constexpr int64_t n = 3, t = 2500, g = 5;
  const Array kinds = random_array({n, t}, 1, -9, 8), boxes = random_array({n, t, 4}, 2, 1, 9);
  const Array truth = random_array({n, g, 4}, 3, 1, 9);
  Indices matched;
  for (const double kind : kinds.values) matched.push_back(kind < kBackground ? kIgnored : static_cast<int32_t>(kind));
  const Indices classes{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  for (const auto& context : devices())
    for (const int64_t s : {100, 1000, 2600}) {
      poison(*context);
      const RoiSamples samples = empty_samples(*context, n * s);
      gather_samples(*context, to_device(*context, boxes), to_device(*context, {n, t}, matched),
                     to_device(*context, truth), to_device(*context, {n, g}, classes), {}, samples);
      const Floats rois = values_of<float>(*context, samples.rois), totals = values_of<float>(*context, samples.totals);
      const Indices images = values_of<int32_t>(*context, samples.images);
      const Indices found = values_of<int32_t>(*context, samples.classes);
      float rows = 0, positives = 0;
      for (int64_t image = 0; image < n; ++image) {
        const Indices expected = naive_rows(matched, image * t, t, g, static_cast<size_t>(s));
        for (int64_t i = 0; i < s; ++i) {
          const auto row = static_cast<size_t>(image * s + i);
          const bool there = i < static_cast<int64_t>(expected.size());
          const int64_t box = there ? image * t + expected[static_cast<size_t>(i)] : 0;
          const int32_t match = there ? matched[static_cast<size_t>(box)] : kIgnored;
          const int32_t wanted = match >= 0 ? classes[static_cast<size_t>(image * g + match)] : there ? 0 : -1;
          ASSERT_EQ(images[row], there ? image : -1) << row;
          ASSERT_EQ(found[row], wanted) << row;
          for (size_t c = 0; c < 4; ++c)
            ASSERT_EQ(rois[4 * row + c], there ? boxes[4 * box + static_cast<int64_t>(c)] : 0) << row;
          rows += there ? 1 : 0, positives += match >= 0 ? 1 : 0;
        }
      }
      EXPECT_EQ(totals, (Floats{rows, positives}));
    }
}

TEST(RoiSamples, RefuseWhatDoesNotFit) {
  for (const auto& context : devices()) {
    const Tensor boxes = context->zeros({2, 3, 4}), matched = context->zeros({2, 3}, DType::i32);
    const Tensor truth = context->zeros({2, 1, 4}), classes = context->zeros({2, 1}, DType::i32);
    const auto gather = [&](const Tensor& gt, const RoiSamples& samples) {
      gather_samples(*context, boxes, matched, gt, classes, {}, samples);
    };
    expect_error([&] { gather(boxes, empty_samples(*context, 4)); }, Fault::config, "gather_samples: truth");
    expect_error([&] { gather(truth, empty_samples(*context, 5)); }, Fault::config, "5 rows for 2 images");
    RoiSamples samples = empty_samples(*context, 4);
    samples.totals = context->zeros({1});
    expect_error([&] { gather(truth, samples); }, Fault::config, "totals");
  }
}

}  // namespace
}  // namespace dtrain
