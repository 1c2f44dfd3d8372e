// Histograms, images, texts and hyper-parameters of TensorBoard, read back without the engine.
#include "dtrain/io/summary.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "tests/event_reader.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

ReadEvent read_back(const Summary& summary) {
  ReadEvent event;
  for (const auto& [number, value] : read_message(summary.bytes())) read_value(value.bytes, event);
  return event;
}

ReadHistogram histogram_of(const std::vector<float>& values) {
  Histogram histogram;
  histogram.add(values);
  Summary summary;
  summary.histogram("a", histogram);
  return read_back(summary).histograms.at("a");
}

// The limit above a number, found step by step: buckets are [below, limit) on both sides of 0.
double limit_above(double value) {
  double below = 0, limit = 1e-12;
  const double size = std::abs(value);
  while (limit < 1e20 && (value >= 0 ? limit <= size : limit < size)) {
    below = limit;
    limit *= 1.1;
  }
  if (value < 0) return -below;
  return limit < 1e20 ? limit : std::numeric_limits<double>::max();
}

TEST(SummaryHistogram, NumbersLieInTensorFlowsBuckets) {
  std::vector<float> values = {0.f,  -0.f, 1e-12f, -1e-12f, 1e-13f, -1e-13f, 1e-45f, -1e-45f, 1.f,
                               -1.f, 0.5f, 3e38f,  -3e38f,  1e20f,  -1e20f,  1e19f,  -7e-5f,  123.456f};
  for (int i = -80; i <= 80; ++i) values.push_back(std::copysign(std::exp2(std::abs(i) / 1.5f - 30), i + 0.5f));
  for (const float value : values) {
    const ReadHistogram one = histogram_of({value});
    const auto full = std::ranges::find(one.counts, 1.0);
    ASSERT_NE(full, one.counts.end()) << value;
    EXPECT_EQ(one.limits[static_cast<size_t>(full - one.counts.begin())], limit_above(value)) << value;
    EXPECT_EQ(std::accumulate(one.counts.begin(), one.counts.end(), 0.0), 1) << value;
    EXPECT_LE(one.counts.size(), 3u) << "runs of empty buckets are one";
  }
  const ReadHistogram all = histogram_of(values);
  EXPECT_EQ(all.num, static_cast<double>(values.size()));
  EXPECT_EQ(std::accumulate(all.counts.begin(), all.counts.end(), 0.0), all.num);
  EXPECT_EQ(all.min, double{-3e38f});
  EXPECT_EQ(all.max, double{3e38f});
  EXPECT_TRUE(std::ranges::is_sorted(all.limits));
  EXPECT_EQ(all.limits.back(), std::numeric_limits<double>::max());
}

TEST(SummaryHistogram, SumsAreThoseOfTheNumbers) {
  const ReadHistogram some = histogram_of({1, 2, 2, -4, std::nanf(""), INFINITY, -INFINITY});
  EXPECT_EQ(some.num, 4);
  EXPECT_EQ(some.sum, 1);
  EXPECT_EQ(some.sum_squares, 25);
  EXPECT_EQ(some.min, -4);
  EXPECT_EQ(some.max, 2);
  const ReadHistogram none = histogram_of({});
  EXPECT_EQ(none.num, 0);
  EXPECT_EQ(none.counts, std::vector<double>{0});
}

TEST(Summary, HoldsEveryKindOfValue) {
  Summary summary;
  summary.scalar("loss", 0.5);
  summary.image("picture", 300, 2, "bytes\0of PNG");
  summary.text("words", "| a |\n|---|\n");
  const HyperParameters parameters = {{"flag", false}, {"number", 0.25}, {"text", std::string("adam")}};
  summary.session_start(parameters, 1.5e9);
  summary.session_success(1.6e9);
  const ReadEvent event = read_back(summary);
  EXPECT_EQ(event.scalars, (std::vector<std::pair<std::string, float>>{{"loss", 0.5f}}));
  const ReadImage& image = event.images.at("picture");
  EXPECT_EQ(image.width, 300u);
  EXPECT_EQ(image.height, 2u);
  EXPECT_EQ(image.colours, 3u);
  EXPECT_EQ(event.texts.at("words"), "| a |\n|---|\n");

  const auto start =
      read_message(read_message(event.sessions.at("_hparams_/session_start_info")).find(3)->second.bytes);
  EXPECT_EQ(std::bit_cast<double>(start.find(5)->second.bits), 1.5e9);
  std::map<std::string, std::multimap<uint64_t, ReadField>> values;
  for (auto [entry, end] = start.equal_range(1); entry != end; ++entry) {
    const auto pair = read_message(entry->second.bytes);
    values[pair.find(1)->second.bytes] = read_message(pair.find(2)->second.bytes);
  }
  ASSERT_EQ(values.size(), 3u);
  EXPECT_EQ(values["flag"].find(4)->second.bits, 0u);
  EXPECT_EQ(std::bit_cast<double>(values["number"].find(2)->second.bits), 0.25);
  EXPECT_EQ(values["text"].find(3)->second.bytes, "adam");
  const auto end = read_message(read_message(event.sessions.at("_hparams_/session_end_info")).find(4)->second.bytes);
  EXPECT_EQ(end.find(1)->second.bits, 1u) << "success";
  EXPECT_EQ(std::bit_cast<double>(end.find(2)->second.bits), 1.6e9);
}

}  // namespace
}  // namespace dtrain
