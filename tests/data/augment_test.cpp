// Preprocessing: rules and statistics of crop samplers, colour ops, and presets against their definitions.
#include "dtrain/data/augment.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "data/color.h"
#include "dtrain/data/cifar10.h"
#include "dtrain/data/jpeg.h"
#include "dtrain/data/png.h"
#include "tests/data/noise.h"
#include "tests/testing.h"

namespace dtrain::data {
namespace {

bool inside(const Window& w, int width, int height) {
  return w.x >= 0 && w.y >= 0 && w.width > 0 && w.height > 0 && w.x + w.width <= width && w.y + w.height <= height;
}

TEST(SampleDistortedBox, RespectsLimits) {
  constexpr int kWidth = 500, kHeight = 375;
  std::vector<double> areas, aspects;
  int last_row = 0, last_column = 0;
  for (uint64_t i = 0; i < 20000; ++i) {
    RandomStream random(1, i);
    const Window w = sample_distorted_box(kWidth, kHeight, {}, random);
    ASSERT_TRUE(inside(w, kWidth, kHeight));
    const double area = static_cast<double>(w.width) * w.height / (kWidth * kHeight);
    ASSERT_GE(area, 0.1) << "less than a tenth of the image is covered";
    ASSERT_LE(area, 1.0);
    ASSERT_NEAR(static_cast<double>(w.width) / w.height, 1.04, 0.29 + 1.0 / w.height) << w.width << "x" << w.height;
    last_row += w.height < kHeight && w.y == kHeight - w.height;
    last_column += w.width < kWidth && w.x == kWidth - w.width;
    areas.push_back(area);
    aspects.push_back(static_cast<double>(w.width) / w.height);
  }
  EXPECT_EQ(last_row, 0) << "the last offset is never drawn";
  EXPECT_EQ(last_column, 0);
  const auto mean = [](const std::vector<double>& v) { return std::accumulate(v.begin(), v.end(), 0.0) / v.size(); };
  EXPECT_NEAR(mean(aspects), 1.04, 0.01);
  // The height is uniform between the heights for area 0.05 and for the largest crop: E of aspect * h^2 over h in [a,
  // b] for an image of aspect 4/3, given an area of at least 0.1.
  double sum = 0, count = 0;
  for (double aspect = 0.7505; aspect < 1.33; aspect += 0.001) {
    const int low = static_cast<int>(std::lrint(std::sqrt(0.05 * kWidth * kHeight / aspect)));
    const int high = std::min(kHeight, static_cast<int>((kWidth + 0.5) / aspect));
    double inner = 0, kept = 0;
    for (int h = low; h <= high; ++h) {
      const double area = std::lrint(h * aspect) * static_cast<double>(h) / (kWidth * kHeight);
      if (area >= 0.1) inner += area, ++kept;
    }
    sum += inner / (high - low + 1);
    count += kept / (high - low + 1);
  }
  EXPECT_NEAR(mean(areas), sum / count, 0.01);
}

TEST(SampleDistortedBox, CoversABox) {
  const std::vector<NormalizedBox> boxes = {{0.1f, 0.8f, 0.3f, 0.9f}, {0.8f, 0.1f, 0.9f, 0.2f}};
  for (uint64_t i = 0; i < 2000; ++i) {
    RandomStream random(2, i);
    const Window w = sample_distorted_box(300, 200, boxes, random);
    double best = 0;
    for (const NormalizedBox& box : boxes) {
      const int x0 = static_cast<int>(box.xmin * 300), x1 = static_cast<int>(box.xmax * 300);
      const int y0 = static_cast<int>(box.ymin * 200), y1 = static_cast<int>(box.ymax * 200);
      const double common = std::max(0, std::min(x1, w.x + w.width) - std::max(x0, w.x)) *
                            static_cast<double>(std::max(0, std::min(y1, w.y + w.height) - std::max(y0, w.y)));
      best = std::max(best, common / ((x1 - x0) * (y1 - y0)));
    }
    ASSERT_GE(best, 0.1);
  }
}

TEST(SampleDistortedBox, FallsBackToTheWholeImage) {
  const std::vector<NormalizedBox> nothing = {{0.5f, 0.5f, 0.5f, 0.5f}};  // no pixels: never covered
  RandomStream random(3, 0);
  EXPECT_EQ(sample_distorted_box(100, 50, nothing, random), (Window{0, 0, 100, 50}));
  EXPECT_EQ(sample_distorted_box(1, 1, {}, random), (Window{0, 0, 1, 1}));
}

TEST(SampleDistortedBox, RejectsBoxesOutsideTheImage) {
  RandomStream random(4, 0);
  for (const NormalizedBox& box :
       {NormalizedBox{-0.1f, 0, 1, 1}, NormalizedBox{0, 0, 1.5f, 1}, NormalizedBox{0, NAN, 1, 1}}) {
    try {
      sample_distorted_box(10, 10, {&box, 1}, random);
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(error.fault(), Fault::data);
    }
  }
}

TEST(RandomResizedCrop, RespectsLimits) {
  double area_sum = 0;
  int edge = 0;
  for (uint64_t i = 0; i < 20000; ++i) {
    RandomStream random(5, i);
    const Window w = random_resized_crop(400, 400, random);
    ASSERT_TRUE(inside(w, 400, 400));
    const double area = w.width * w.height / 160000.0, aspect = static_cast<double>(w.width) / w.height;
    ASSERT_GE(area, 0.08 - 0.01);
    ASSERT_NEAR(std::log(aspect), 0, std::log(4.0 / 3) + 0.02);
    area_sum += area;
    edge += w.y == 400 - w.height && w.height < 400;
  }
  EXPECT_NEAR(area_sum / 20000, 0.479, 0.006);  // torchvision 0.14 over 40,000 draws
  EXPECT_GT(edge, 0) << "the last offset is drawn";
  RandomStream random(5, 0);
  EXPECT_EQ(random_resized_crop(1000, 10, random), (Window{493, 0, 13, 10}));
  EXPECT_EQ(random_resized_crop(10, 1000, random), (Window{0, 493, 10, 13}));
}

TEST(SampleStream, IsUniquePerSample) {
  const SampleKey key{1, 2, 3, 4};
  EXPECT_EQ(sample_stream(key).next64(), sample_stream({1, 2, 3, 99}).next64()) << "the position is no part of it";
  EXPECT_NE(sample_stream(key).next64(), sample_stream({0, 2, 3, 4}).next64());
  EXPECT_NE(sample_stream(key).next64(), sample_stream({1, 3, 3, 4}).next64());
  EXPECT_NE(sample_stream(key).next64(), sample_stream({1, 2, 4, 4}).next64());
}

TEST(PadCropFlip, ShiftsByAtMostFourAndFlipsHalf) {
  Image image(32, 32);
  for (int i = 0; i < 32 * 32; ++i) {
    image.pixels[static_cast<size_t>(3 * i)] = static_cast<uint8_t>(1 + i % 32);
    image.pixels[static_cast<size_t>(3 * i + 1)] = static_cast<uint8_t>(1 + i / 32);
  }
  std::vector<uint8_t> out(3 * 32 * 32);
  int flips = 0, moves[9] = {};
  for (uint64_t i = 0; i < 2000; ++i) {
    RandomStream random(6, i);
    pad_crop_flip(image.view(), random, out.data());
    const uint8_t* middle = out.data() + 3 * (16 * 32 + 16);
    const bool flip = middle[3] < middle[0];
    flips += flip;
    const int dx = middle[0] - 1 - (flip ? 15 : 16), dy = middle[1] - 1 - 16;
    ASSERT_LE(std::abs(dx), 4);
    ASSERT_LE(std::abs(dy), 4);
    ++moves[dx + 4];
    if (dy == 4) {
      ASSERT_EQ(out[3 * 31 * 32], 0) << "padding is black";
    }
  }
  EXPECT_NEAR(flips, 1000, 100);
  for (const int count : moves) EXPECT_NEAR(count, 2000 / 9, 70);
}

TEST(Color, OpsMatchFormulas) {
  std::vector<float> rgb = {0.2f, 0.4f, 0.6f, 0.9f, 0.5f, 0.1f, 0.3f, 0.3f, 0.3f};
  const std::vector<float> before = rgb;
  rotate_hue(rgb.data(), 3, 1.0f / 3);  // a third of a turn permutes the channels
  for (size_t i = 0; i < 9; ++i) EXPECT_NEAR(rgb[i], before[i / 3 * 3 + (i + 2) % 3], 1e-5) << i;
  rgb = before;
  scale_saturation(rgb.data(), 3, 0.5f);  // S 2/3 -> 1/3: the lowest channel of 0.6 becomes 0.4
  const std::vector<float> half = {0.4f, 0.5f, 0.6f, 0.9f, 0.7f, 0.5f, 0.3f, 0.3f, 0.3f};
  for (size_t i = 0; i < 9; ++i) EXPECT_NEAR(rgb[i], half[i], 1e-5) << i;
  rgb = before;
  scale_contrast(rgb.data(), 3, 2);
  EXPECT_NEAR(rgb[0], 2 * (0.2 - 1.4 / 3) + 1.4 / 3, 1e-5);
  EXPECT_NEAR(rgb[5], 2 * (0.1 - 1.0 / 3) + 1.0 / 3, 1e-5);
  rgb = before;
  turn_in_yiq(rgb.data(), 3, 0, 1);
  for (size_t i = 0; i < 9; ++i) EXPECT_NEAR(rgb[i], before[i], 2e-3);
  turn_in_yiq(rgb.data(), 3, 0.3f, 0);  // no saturation leaves the luma
  for (size_t i = 0; i < 9; ++i)
    EXPECT_NEAR(rgb[i], 0.299 * before[i / 3 * 3] + 0.587 * before[i / 3 * 3 + 1] + 0.114 * before[i / 3 * 3 + 2],
                2e-3);
}

// Preset computed naively: full decode, crop, flip, resize.
TEST(Preprocessor, TfTrainingIsCropFlipResize) {
  const std::vector<std::byte> bytes = encode_jpeg(noise(120, 90, 8).view());
  ImageDecoder decoder({.fast_dct = true});
  decoder.open(bytes);
  const ImageView view = decoder.decode();
  const auto preprocessor = make_preprocess({.height = 32, .width = 40})();
  std::vector<float> pixels(3 * 32 * 40), wanted(pixels.size()), rows;
  int flips = 0;
  for (uint64_t sample = 0; sample < 20; ++sample) {
    const SampleKey key{1, 0, sample, sample};
    EXPECT_EQ(preprocessor->run(bytes, {}, key, pixels.data()).damage, "");
    RandomStream random = sample_stream(key);
    const Window crop = sample_distorted_box(120, 90, {}, random);
    const bool flip = random.uniform() < 0.5f;
    flips += flip;
    Filter<float> x, y;
    make_filter({crop.width, 40, 0, 40, flip}, ResizeMethod::bilinear, x);
    make_filter({crop.height, 32, 0, 32, false}, ResizeMethod::bilinear, y);
    resample({view.row(crop.y) + 3 * crop.x, crop.width, crop.height, view.stride}, x, y, rows, wanted.data());
    ASSERT_EQ(pixels, wanted);
  }
  EXPECT_TRUE(flips > 2 && flips < 18);
}

TEST(Preprocessor, StatesOutputShapeAndType) {
  EXPECT_EQ(make_preprocess({.height = 32, .width = 40}).shape, (Shape{32, 40, 3}));
  EXPECT_EQ(make_preprocess({.height = 32, .width = 40}).dtype, DType::f32);
  EXPECT_EQ(make_preprocess({.preset = Preset::torchvision}).shape, (Shape{224, 224, 3}));
  EXPECT_EQ(make_preprocess({.preset = Preset::torchvision}).dtype, DType::u8);
}

TEST(Preprocessor, EvaluationUsesCentralCrop) {
  // White image with a black frame that the central crop of 1 / 1.145 must exclude.
  Image image(400, 300);
  for (int y = 0; y < 300; ++y)
    for (int x = 0; x < 1200; ++x)
      image.pixels[static_cast<size_t>(1200 * y + x)] = x < 9 || x >= 1191 || y < 4 || y >= 296 ? 0 : 255;
  const std::vector<std::byte> bytes = encode_png(image.view());
  const auto tf = make_preprocess({.training = false, .height = 64, .width = 64})();
  std::vector<float> pixels(3 * 64 * 64);
  tf->run(bytes, {}, {}, pixels.data());
  EXPECT_EQ(*std::min_element(pixels.begin(), pixels.end()), 255.0f);
  const auto torchvision =
      make_preprocess({.preset = Preset::torchvision, .training = false, .height = 64, .width = 64})();
  std::vector<uint8_t> small(3 * 64 * 64);
  torchvision->run(bytes, {}, {}, small.data());
  EXPECT_EQ(*std::min_element(small.begin(), small.end()), 255);
}

TEST(Preprocessor, DistortionsStayInRangeAndFollowTheKey) {
  const std::vector<std::byte> bytes = encode_jpeg(noise(60, 60, 9).view());
  std::vector<std::vector<float>> seen;
  for (const bool yiq : {true, false})
    for (const uint64_t position : {0, 1, 0}) {
      const auto preprocessor =
          make_preprocess({.height = 16, .width = 16, .distort_color = true, .distort_in_yiq = yiq})();
      std::vector<float> pixels(3 * 16 * 16);
      preprocessor->run(bytes, {}, {1, 0, 5, position}, pixels.data());
      for (const float value : pixels) ASSERT_TRUE(value >= 0 && value <= 255);
      seen.push_back(pixels);
    }
  EXPECT_EQ(seen[0], seen[2]);
  EXPECT_NE(seen[0], seen[1]) << "odd positions change the order";
  EXPECT_NE(seen[0], seen[3]) << "YIQ is not HSV";
}

TEST(Preprocessor, RoundRobinFollowsPosition) {
  const std::vector<std::byte> bytes = encode_png(noise(50, 40, 10).view());
  const auto robin = make_preprocess({.height = 16, .width = 16, .resize = TfResize::round_robin})();
  std::vector<float> pixels(3 * 16 * 16), wanted(pixels.size());
  for (const uint64_t position : {4, 5, 6, 7}) {
    const auto fixed = make_preprocess({.height = 16, .width = 16, .resize = static_cast<TfResize>(position % 4)})();
    robin->run(bytes, {}, {1, 0, 5, position}, pixels.data());
    fixed->run(bytes, {}, {1, 0, 5, position}, wanted.data());
    EXPECT_EQ(pixels, wanted);
  }
}

TEST(Preprocessor, CropDoesNotResize) {
  constexpr int kHeight = 32, kWidth = 40;
  for (const auto& [width, height] : {std::pair{61, 45}, {40, 32}, {27, 19}, {65, 20}, {30, 50}}) {
    const Image image = noise(width, height, 12);
    const std::vector<std::byte> bytes = encode_png(image.view());
    int flips = 0;
    for (const bool training : {false, true}) {
      const auto preprocessor =
          make_preprocess({.training = training, .height = kHeight, .width = kWidth, .resize = TfResize::crop})();
      std::vector<float> pixels(3 * kHeight * kWidth), centre(pixels.size()), mirrored(pixels.size());
      // Position of the result's corner in the image; outside of it for a smaller image.
      const int top = height > kHeight ? (height - kHeight) / 2 : -((kHeight - height) / 2);
      const int left = width > kWidth ? (width - kWidth) / 2 : -((kWidth - width) / 2);
      for (int i = 0; i < 3 * kHeight * kWidth; ++i) {
        const int y = i / 3 / kWidth + top, x = i / 3 % kWidth + left;
        if (y < 0 || y >= height || x < 0 || x >= width) continue;
        centre[static_cast<size_t>(i)] = image.view().row(y)[3 * x + i % 3];
        mirrored[static_cast<size_t>(i)] = image.view().row(y)[3 * (width - 1 - x) + i % 3];
      }
      for (uint64_t sample = 0; sample < 20; ++sample) {
        EXPECT_EQ(preprocessor->run(bytes, {}, {1, 0, sample, sample}, pixels.data()).damage, "");
        const bool flip = pixels != centre;
        ASSERT_TRUE(!flip || (training && pixels == mirrored)) << width << "x" << height;
        flips += flip;
      }
    }
    EXPECT_TRUE(flips > 2 && flips < 18);
  }
}

TEST(Preprocessor, ReportsDamageAndSurvivesBadImages) {
  const std::vector<std::byte> bytes = encode_jpeg(noise(60, 60, 11).view());
  const auto preprocessor =
      make_preprocess({.preset = Preset::torchvision, .training = false, .height = 56, .width = 56})();
  std::vector<uint8_t> pixels(3 * 56 * 56), again(pixels.size());
  EXPECT_EQ(preprocessor->run(bytes, {}, {}, pixels.data()).damage, "");
  EXPECT_NE(preprocessor->run({bytes.data(), bytes.size() / 2}, {}, {}, again.data()).damage, "");
  EXPECT_THROW(preprocessor->run({bytes.data(), 30}, {}, {}, again.data()), Error);
  EXPECT_EQ(preprocessor->run(bytes, {}, {}, again.data()).damage, "");
  EXPECT_EQ(pixels, again);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
TEST(Preprocessor, OldNamesStillCompile) {
  const MakePreprocess make = make_preprocess({.height = 16, .width = 16});
  const Preprocess preprocess = make();
  const std::vector<std::byte> bytes = encode_png(noise(50, 40, 14).view());
  std::vector<float> old(3 * 16 * 16), now(old.size());
  EXPECT_EQ(preprocess(bytes, {}, {1, 0, 5, 5}, old.data()).damage, "");
  make()->run(bytes, {}, {1, 0, 5, 5}, now.data());
  EXPECT_EQ(old, now);
}
#pragma GCC diagnostic pop

}  // namespace
}  // namespace dtrain::data
