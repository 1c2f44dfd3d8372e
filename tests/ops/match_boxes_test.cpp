// Matching by IoU and sampling, against loops over all pairs in double precision.
#include "dtrain/ops/match_boxes.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "dtrain/core/rng.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

using Matches = std::vector<int32_t>;

// Corners are small integers: IoUs often tie, and are exact in double up to one division.
std::vector<float> grid_boxes(int64_t count, uint64_t seed) {
  RandomStream random(seed, 0);
  std::vector<float> boxes;
  for (int64_t i = 0; i < count; ++i) {
    const float x = static_cast<float>(random.below(60)) - 5, y = static_cast<float>(random.below(60)) - 5;
    const auto w = static_cast<float>(random.below(16)), h = static_cast<float>(random.below(16));
    boxes.insert(boxes.end(), {x, y, x + w, y + h});
  }
  return boxes;
}

struct MatchCase {
  int64_t n = 1, t = 1, g = 1;
  std::vector<float> boxes{}, truth{};  // [t, 4] or [n, t, 4], and [n, g, 4]
  Matches counts{}, valid{};            // [n]; valid may be empty
  std::vector<float> sizes{};           // [n, 2] or empty
  MatchOptions options{};
};

double naive_overlap(const float* a, const float* b, double margin) {
  const double w = std::min<double>(a[2], b[2]) - std::max<double>(a[0], b[0]) + margin;
  const double h = std::min<double>(a[3], b[3]) - std::max<double>(a[1], b[1]) + margin;
  if (w <= 0 || h <= 0) return 0;
  const auto area = [&](const float* box) { return (box[2] - box[0] + margin) * (box[3] - box[1] + margin); };
  return w * h / (area(a) + area(b) - w * h);
}

// [t, g] matrix of one image, processed like torchvision's Matcher or TensorPack.
Matches naive_match(const MatchCase& c, int64_t image) {
  const double margin = c.options.plus_one ? 1 : 0;
  const auto t = static_cast<size_t>(c.t), i = static_cast<size_t>(image), count = static_cast<size_t>(c.counts[i]);
  const float* boxes = c.boxes.data() + (c.boxes.size() == 4 * t ? 0 : 4 * t * i);
  const float* truth = c.truth.data() + 4 * static_cast<size_t>(c.g) * i;
  Matches matched(t, kBackground);
  std::vector<bool> out(t, false);
  std::vector<std::vector<float>> iou(t, std::vector<float>(count));
  std::vector<float> best_of_truth(count, 0);
  for (size_t j = 0; j < t; ++j) {
    const float* box = boxes + 4 * j;
    if (!c.valid.empty() && static_cast<int64_t>(j) >= c.valid[i]) out[j] = true;
    if (std::all_of(box, box + 4, [](float corner) { return corner == 0; })) out[j] = true;
    if (c.options.inside_only &&
        (box[0] < 0 || box[1] < 0 || box[2] + margin > c.sizes[2 * i + 1] || box[3] + margin > c.sizes[2 * i]))
      out[j] = true;
    for (size_t k = 0; k < count && !out[j]; ++k) {
      iou[j][k] = static_cast<float>(naive_overlap(box, truth + 4 * k, margin));
      best_of_truth[k] = std::max(best_of_truth[k], iou[j][k]);
    }
  }
  for (size_t j = 0; j < t; ++j) {
    if (out[j]) matched[j] = kIgnored;
    if (out[j] || count == 0) continue;
    const auto best = std::max_element(iou[j].begin(), iou[j].end());
    const auto own = static_cast<int32_t>(best - iou[j].begin());
    bool kept = false;
    for (size_t k = 0; k < count; ++k) kept |= iou[j][k] > 0 && iou[j][k] == best_of_truth[k];
    matched[j] = *best >= c.options.positive ? own : *best < c.options.negative ? kBackground : kIgnored;
    if (kept && c.options.keep_best && !(c.options.negative_last && *best < c.options.negative)) matched[j] = own;
  }
  return matched;
}

Matches match_on(Context& context, const MatchCase& c) {
  const bool shared = c.boxes.size() == static_cast<size_t>(4 * c.t);
  poison(context);
  const Tensor boxes = to_device(context, shared ? Shape{c.t, 4} : Shape{c.n, c.t, 4}, c.boxes);
  const Tensor valid = c.valid.empty() ? Tensor() : to_device(context, {c.n}, c.valid);
  const Tensor sizes = c.sizes.empty() ? Tensor() : to_device(context, {c.n, 2}, c.sizes);
  const Tensor matched = context.empty({c.n, c.t}, DType::i32);
  match_boxes(context, boxes, valid, to_device(context, {c.n, c.g, 4}, c.truth), to_device(context, {c.n}, c.counts),
              sizes, c.options, matched);
  return values_of<int32_t>(context, matched);
}

void expect_matches(const MatchCase& c, const std::string& what) {
  Matches expected;
  for (int64_t image = 0; image < c.n; ++image) {
    const Matches own = naive_match(c, image);
    expected.insert(expected.end(), own.begin(), own.end());
  }
  for (const auto& context : devices()) EXPECT_EQ(match_on(*context, c), expected) << what;
}

// Several blocks of boxes with a remainder, and more ground truths than a warp or tile holds.
MatchCase many_boxes(bool shared) {
  constexpr int64_t n = 4, t = 600, g = 150;
  return {.n = n,
          .t = t,
          .g = g,
          .boxes = grid_boxes(shared ? t : n * t, 1),
          .truth = grid_boxes(n * g, 2),
          .counts = {3, 0, 150, 20},
          .valid = {600, 400, 590, 0},
          .sizes = {50, 60, 60, 40, 55, 55, 40, 40}};
}

TEST(MatchBoxes, AllOptions) {
  for (const bool shared : {true, false})
    for (int bits = 0; bits < 16; ++bits) {
      MatchCase c = many_boxes(shared);
      if (shared) c.valid.clear();
      c.options = {.positive = 0.6f,
                   .negative = 0.25f,
                   .keep_best = (bits & 1) != 0,
                   .negative_last = (bits & 2) != 0,
                   .inside_only = (bits & 4) != 0,
                   .plus_one = (bits & 8) != 0};
      expect_matches(c, concat("options ", bits, shared ? ", shared" : ""));
    }
}

TEST(MatchBoxes, KeptBoxesTakeTheirOwnBest) {
  // Box 0 is the best of truth 0 but overlaps truth 1 more, whose best is box 1.
  MatchCase c{.t = 2,
              .g = 2,
              .boxes = {0, 0, 10, 10, 4, 0, 14, 10},
              .truth = {0, 0, 2, 10, 3, 0, 13, 10},
              .counts = {2},
              .options = {.positive = 0.9f, .negative = 0.85f}};
  expect_matches(c, "without keep_best");
  c.options.keep_best = true;
  expect_matches(c, "with keep_best");
  for (const auto& context : devices()) EXPECT_EQ(match_on(*context, c), (Matches{1, 1}));
  c.options.negative_last = true;
  for (const auto& context : devices()) EXPECT_EQ(match_on(*context, c), (Matches{kBackground, kBackground}));
}

TEST(MatchBoxes, TiesGoToTheFirstGroundTruth) {
  const MatchCase c{
      .t = 1, .g = 3, .boxes = {0, 0, 4, 4}, .truth = {9, 9, 10, 10, 0, 0, 4, 4, 0, 0, 4, 4}, .counts = {3}};
  for (const auto& context : devices()) EXPECT_EQ(match_on(*context, c), Matches{1});
}

TEST(MatchBoxes, RowsOfZerosAreNoBoxes) {
  const MatchCase c{
      .t = 3, .g = 1, .boxes = {0, 0, 4, 4, 0, 0, 0, 0, 7, 7, 7, 7}, .truth = {0, 0, 4, 5}, .counts = {1}};
  for (const auto& context : devices()) EXPECT_EQ(match_on(*context, c), (Matches{0, kIgnored, kBackground}));
}

TEST(MatchBoxes, NoGroundTruth) {
  const MatchCase c{.t = 3,
                    .g = 0,
                    .boxes = {0, 0, 4, 4, -1, 0, 4, 4, 2, 2, 8, 9},
                    .counts = {0},
                    .sizes = {8, 8},
                    .options = {.keep_best = true, .inside_only = true}};
  for (const auto& context : devices()) EXPECT_EQ(match_on(*context, c), (Matches{kBackground, kIgnored, kIgnored}));
}

TEST(MatchBoxes, BoxesThatAreNotNumbersMatchNothing) {
  MatchCase c{.t = 3,
              .g = 2,
              .boxes = {0, 0, 4, 4, NAN, 0, 4, 4, 0, 0, 4, NAN},
              .truth = {0, 0, 4, NAN, 0, 0, 4, 4},
              .counts = {2},
              .options = {.keep_best = true}};
  for (const auto& context : devices()) EXPECT_EQ(match_on(*context, c), (Matches{1, kBackground, kBackground}));
}

// Arbitrary corners: results must not depend on device or thread count.
TEST(MatchBoxes, AgreeOnAllDevices) {
  MatchCase c{.n = 2, .t = 3000, .g = 40, .counts = {40, 33}, .options = {.keep_best = true}};
  for (auto* boxes : {&c.boxes, &c.truth}) {
    const int64_t count = boxes == &c.boxes ? c.t : c.n * c.g;
    const Array at = random_array({count, 2}, 5, 0, 300), size = random_array({count, 2}, 6, 5, 90);
    for (int64_t i = 0; i < count; ++i)
      for (int64_t d = 0; d < 4; ++d)
        boxes->push_back(static_cast<float>(at[2 * i + d % 2] + (d >= 2 ? size[2 * i + d % 2] : 0)));
  }
  const Matches expected = match_on(*make_cpu_context({.threads = 1}), c);
  EXPECT_GT(std::count_if(expected.begin(), expected.end(), [](int32_t m) { return m >= 0; }), 40);
  EXPECT_EQ(match_on(*make_cpu_context({.threads = 3}), c), expected);
  for (const auto& context : devices()) EXPECT_EQ(match_on(*context, c), expected);
}

TEST(MatchBoxes, RefuseWhatDoesNotFit) {
  for (const auto& context : devices()) {
    const Tensor boxes = context->zeros({5, 4}), truth = context->zeros({2, 3, 4}), none;
    const Tensor counts = context->zeros({2}, DType::i32), matched = context->zeros({2, 5}, DType::i32);
    const auto match = [&](const Tensor& b, const Tensor& c, const MatchOptions& options) {
      match_boxes(*context, b, none, truth, c, none, options, matched);
    };
    expect_error([&] { match(truth, counts, {}); }, Fault::config, "match_boxes: boxes");
    expect_error([&] { match(boxes, none, {}); }, Fault::config, "match_boxes: counts");
    expect_error([&] { match(boxes, counts, {.inside_only = true}); }, Fault::config, "match_boxes: sizes");
    expect_error([&] { match(boxes, counts, {.positive = 0.2f}); }, Fault::config, "below 0.3");
    expect_error([&] { sample_matches(*context, {.total = 2, .positives = 3}, matched); }, Fault::config,
                 "3 positives of 2");
    expect_error([&] { sample_matches(*context, {}, boxes); }, Fault::config, "sample_matches: matched");
  }
}

// Two images: 40 positives, 300 background and 60 ignored boxes, interleaved; and 500 background boxes.
constexpr int64_t kDrawnImages = 2, kDrawnBoxes = 500;
Matches undrawn_matches() {
  Matches matched(kDrawnImages * kDrawnBoxes, kBackground);
  for (size_t i = 0; i < 500; ++i) matched[i] = i % 10 == 3 && i < 400 ? static_cast<int32_t>(i % 7) : kBackground;
  for (size_t i = 0; i < 500; ++i)
    if (i % 5 == 1) matched[i] = kIgnored;
  return matched;
}

Matches sampled_on(Context& context, const SampleOptions& options, uint64_t seed, uint64_t step, const Matches& from,
                   int64_t images = kDrawnImages) {
  context.set_scalars({.step = step, .seed = seed});
  const Tensor matched = to_device(context, {images, static_cast<int64_t>(from.size()) / images}, from);
  sample_matches(context, options, matched);
  return values_of<int32_t>(context, matched);
}

// All boxes of a kind, sorted by their random keys.
Matches naive_sample(const SampleOptions& options, uint64_t seed, uint64_t step, Matches matched, int64_t images) {
  const size_t t = matched.size() / static_cast<size_t>(images);
  for (size_t image = 0; image < static_cast<size_t>(images); ++image) {
    const auto own = Philox::block(seed, options.stream, step << 32 | (options.first_row + image));
    std::set<std::pair<uint32_t, size_t>> kinds[2];
    for (size_t i = 0; i < t; ++i) {
      const auto words = Philox::block(uint64_t{own[1]} << 32 | own[0], options.stream, i / 4);
      if (const int32_t m = matched[image * t + i]; m != kIgnored) kinds[m >= 0].insert({words[i % 4], i});
    }
    const auto most = static_cast<size_t>(options.positives), total = static_cast<size_t>(options.total);
    const size_t positives = std::min(most, kinds[1].size());
    for (const size_t kind : {0, 1}) {
      size_t rank = 0;
      for (const auto& [word, i] : kinds[kind])
        if (rank++ >= (kind == 1 ? positives : total - positives)) matched[image * t + i] = kIgnored;
    }
  }
  return matched;
}

TEST(SampleMatches, DrawTheSmallestKeys) {
  const Matches from = undrawn_matches();
  for (const auto& context : devices())
    for (const auto& [total, positives] :
         {std::pair{64, 16}, {64, 64}, {256, 128}, {450, 7}, {1000, 500}, {5, 0}, {0, 0}}) {
      const SampleOptions options{.total = total, .positives = positives, .stream = 77, .first_row = 12};
      EXPECT_EQ(sampled_on(*context, options, 5, 9, from), naive_sample(options, 5, 9, from, kDrawnImages))
          << total << ", " << positives;
    }
}

TEST(SampleMatches, ManyBoxes) {
  Matches from(20003);
  for (size_t i = 0; i < from.size(); ++i) from[i] = i % 3 == 0 ? static_cast<int32_t>(i) : kBackground;
  const SampleOptions options{.total = 2000, .positives = 1000};
  const Matches expected = naive_sample(options, 1, 2, from, 1);
  for (const auto& context : devices()) EXPECT_EQ(sampled_on(*context, options, 1, 2, from, 1), expected);
}

TEST(SampleMatches, DependOnTheRowAlone) {
  const Matches from = undrawn_matches(), second(from.begin() + kDrawnBoxes, from.end());
  for (const auto& context : devices()) {
    const Matches both = sampled_on(*context, {.first_row = 4}, 1, 2, from);
    const Matches alone = sampled_on(*context, {.first_row = 5}, 1, 2, second, 1);
    EXPECT_EQ(Matches(both.begin() + kDrawnBoxes, both.end()), alone);
    EXPECT_NE(sampled_on(*context, {.first_row = 4}, 1, 2, second, 1), alone);
    EXPECT_NE(sampled_on(*context, {.first_row = 5}, 1, 3, second, 1), alone);
    EXPECT_NE(sampled_on(*context, {.first_row = 5}, 2, 2, second, 1), alone);
    EXPECT_NE(sampled_on(*context, {.stream = 1, .first_row = 5}, 1, 2, second, 1), alone);
  }
}

// Addresses in a CUDA graph are fixed; random draws are not.
TEST(SampleMatches, CapturedStepsDrawAnew) {
  const Matches from = undrawn_matches();
  const SampleOptions options{.total = 64, .positives = 16};
  for (const auto& context : devices()) {
    if (context->is_cpu()) continue;
    const Tensor undrawn = to_device(*context, {kDrawnImages, kDrawnBoxes}, from),
                 matched = context->empty(undrawn.shape(), DType::i32);
    const auto graph = context->capture([&] {
      context->copy(undrawn, matched);
      sample_matches(*context, options, matched);
    });
    for (const uint64_t step : {3, 4}) {
      context->set_scalars({.step = step, .seed = 5});
      context->launch(*graph);
      EXPECT_EQ(values_of<int32_t>(*context, matched), naive_sample(options, 5, step, from, kDrawnImages));
    }
  }
}

// Each of 40 boxes is sampled in a quarter of 2000 steps: the standard deviation is 19.4.
TEST(SampleMatches, EachBoxIsAsLikely) {
  const auto context = make_cpu_context();
  std::vector<int> drawn(40);
  for (uint64_t step = 0; step < 2000; ++step) {
    const Matches matched = sampled_on(*context, {.total = 10, .positives = 10}, 3, step, Matches(40, kBackground), 1);
    for (size_t i = 0; i < 40; ++i) drawn[i] += matched[i] == kBackground ? 1 : 0;
  }
  for (const int count : drawn) EXPECT_NEAR(count, 500, 85);
}

}  // namespace
}  // namespace dtrain
