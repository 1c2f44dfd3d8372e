#include "data/coco/paste.h"

#include <cmath>

#include "dtrain/core/rng.h"
#include "tests/testing.h"

namespace dtrain::data::coco {
namespace {

constexpr int kSide = 7, kBordered = kSide + 2;

// Cell (row, column) of the mask padded with one cell of zeros; indices beyond are clamped.
double bordered_cell(const std::vector<float>& cells, int row, int column) {
  row = std::clamp(row, 0, kBordered - 1) - 1;
  column = std::clamp(column, 0, kBordered - 1) - 1;
  const bool inside = row >= 0 && row < kSide && column >= 0 && column < kSide;
  return inside ? cells[static_cast<size_t>(row * kSide + column)] : 0;
}

// Bilinear interpolation at (x, y), in cells relative to the centre of the first padded cell.
double probability_at(const std::vector<float>& cells, double x, double y) {
  const double column = std::floor(x), row = std::floor(y), dx = x - column, dy = y - row;
  const auto cell = [&](int i, int j) {
    return bordered_cell(cells, static_cast<int>(row) + i, static_cast<int>(column) + j);
  };
  return (1 - dy) * ((1 - dx) * cell(0, 0) + dx * cell(0, 1)) + dy * ((1 - dx) * cell(1, 0) + dx * cell(1, 1));
}

// Probability of the pixel, or -1 outside of the enlarged box.
double naive_paste(const std::vector<float>& cells, const PasteBox& box, Paste rule, int64_t row, int64_t column) {
  const auto place = [&](double low, double high, int64_t pixel) {
    if (rule == Paste::continuous) {
      const double cell = (high - low) / kSide, begin = low - cell;
      const double at = (static_cast<double>(pixel) + 0.5 - begin) / cell;
      return at < 0 || at >= kBordered ? -9.0 : at - 0.5;
    }
    const double centre = (low + high) / 2, half = (high - low) / 2 * kBordered / kSide;
    const auto first = static_cast<int64_t>(centre - half), last = static_cast<int64_t>(centre + half);
    const auto size = static_cast<double>(std::max<int64_t>(last - first + 1, 1));
    if (pixel < first || pixel > last) return -9.0;
    return (static_cast<double>(pixel - first) + 0.5) * kBordered / size - 0.5;
  };
  const double x = place(box.x1, box.x2, column), y = place(box.y1, box.y2, row);
  return x < -1 || y < -1 ? -1 : probability_at(cells, x, y);
}

TEST(Paste, ThresholdsAtOneHalf) {
  constexpr int64_t kHeight = 37, kWidth = 53;
  RandomStream random(3, 1);
  int set = 0;
  for (int round = 0; round < 60; ++round) {
    std::vector<float> cells(kSide * kSide);
    for (float& cell : cells) cell = random.uniform();
    // Boxes inside, across and outside of the image, some thinner than a pixel.
    PasteBox box{random.uniform(-20, 55), random.uniform(-20, 40), 0, 0};
    box.x2 = box.x1 + random.uniform(0.2f, 40);
    box.y2 = box.y1 + random.uniform(0.2f, 40);
    for (const Paste rule : {Paste::continuous, Paste::whole_pixels}) {
      const Rle rle = paste(cells, kSide, box, kHeight, kWidth, rule);
      const std::vector<uint8_t> pixels = decode(rle);
      for (int64_t i = 0; i < kHeight * kWidth; ++i) {
        const double p = naive_paste(cells, box, rule, i / kWidth, i % kWidth);
        if (std::abs(p - 0.5) < 1e-5) continue;
        ASSERT_EQ(pixels[static_cast<size_t>(i)], p > 0.5 ? 1 : 0) << "round " << round << ", pixel " << i;
        set += pixels[static_cast<size_t>(i)];
      }
    }
  }
  EXPECT_GT(set, 1000);
}

TEST(Paste, EmptyBoxesSetNothing) {
  const std::vector<float> cells(kSide * kSide, 1);
  for (const PasteBox& box : {PasteBox{5, 5, 5, 9}, PasteBox{9, 9, 2, 2}, PasteBox{NAN, 0, 4, 4},
                              PasteBox{900, 0, 950, 9}, PasteBox{-1e300, 0, -1e299, 5}}) {
    EXPECT_EQ(area(paste(cells, kSide, box, 10, 10, Paste::continuous)), 0u);
    EXPECT_NO_THROW(decode(paste(cells, kSide, box, 10, 10, Paste::whole_pixels)));
  }
}

TEST(Paste, RejectsInvalidMasks) {
  const std::vector<float> cells(48);
  expect_error([&] { paste(cells, kSide, {0, 0, 5, 5}, 10, 10, Paste::continuous); }, Fault::config, "48 cells");
  expect_error(
      [&] {
        paste(std::vector<float>(49), kSide, {0, 0, 5, 5}, 0, 10, Paste::continuous);
      },
      Fault::config, "an image of 0 x 10");
}

}  // namespace
}  // namespace dtrain::data::coco
