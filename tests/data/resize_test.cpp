// Resampling: TensorFlow's methods against a naive double-precision reference, PIL's against checksums of PIL's output.
#include "dtrain/data/resize.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>

#include "tests/data/noise.h"
#include "tests/testing.h"

namespace dtrain::data {
namespace {

Image mirrored(const Image& image) {
  Image out(image.width, image.height);
  for (int y = 0; y < image.height; ++y)
    for (int x = 0; x < image.width; ++x)
      std::copy_n(image.view().row(y) + 3 * (image.width - 1 - x), 3,
                  out.pixels.data() + 3 * (static_cast<ptrdiff_t>(y) * image.width + x));
  return out;
}

double cubic(double x) {  // Keys, a = -0.75
  x = std::abs(x);
  if (x <= 1) return 1.25 * x * x * x - 2.25 * x * x + 1;
  return x < 2 ? -0.75 * x * x * x + 3.75 * x * x - 6 * x + 3 : 0;
}

// Weight of source sample `v`, possibly outside, in output sample `i`.
double weight(ResizeMethod method, double scale, int i, int v) {
  const double position = i * scale, floor = std::floor(position);
  switch (method) {
    case ResizeMethod::nearest:
      return v == floor;
    case ResizeMethod::bilinear:
      return std::max(0.0, 1 - std::abs(v - position));
    case ResizeMethod::bicubic:
      return cubic(v - (floor + std::nearbyint((position - floor) * 1024) / 1024));
    case ResizeMethod::area:
      return std::max(0.0, std::min<double>(v + 1, position + scale) - std::max<double>(v, position)) / scale;
  }
  return 0;
}

double naive(const Image& image, ResizeMethod method, int out_width, int out_height, int x, int y, int c) {
  const double sx = static_cast<double>(image.width) / out_width, sy = static_cast<double>(image.height) / out_height;
  double sum = 0;
  for (int v = -3; v < image.height + 3; ++v) {
    const double wy = weight(method, sy, y, v);
    for (int u = -3; wy != 0 && u < image.width + 3; ++u)
      sum += wy * weight(method, sx, x, u) *
             image.view().row(std::clamp(v, 0, image.height - 1))[3 * std::clamp(u, 0, image.width - 1) + c];
  }
  return sum;
}

std::vector<float> resize(const Image& image, ResizeMethod method, const Axis& x, const Axis& y) {
  Filter<float> fx, fy;
  make_filter(x, method, fx);
  make_filter(y, method, fy);
  std::vector<float> rows, out(static_cast<size_t>(3 * x.count * y.count));
  resample(image.view(), fx, fy, rows, out.data());
  return out;
}

constexpr ResizeMethod kMethods[] = {ResizeMethod::nearest, ResizeMethod::bilinear, ResizeMethod::bicubic,
                                     ResizeMethod::area};

TEST(Resize, TensorFlowMethodsMatchDoubleReference) {
  for (const auto& [w, h, ow, oh] :
       {std::array{37, 23, 16, 12}, {16, 12, 37, 23}, {20, 20, 20, 20}, {1, 1, 4, 3}, {2, 9, 5, 2}, {90, 3, 11, 8}}) {
    const Image image = noise(w, h, 5);
    for (const ResizeMethod method : kMethods)
      for (const bool flip : {false, true}) {
        const std::vector<float> out = resize(image, method, {w, ow, 0, ow, flip}, {h, oh, 0, oh, false});
        const Image source = flip ? mirrored(image) : image;
        for (int y = 0; y < oh; ++y)
          for (int x = 0; x < ow; ++x)
            for (int c = 0; c < 3; ++c)
              ASSERT_NEAR(out[static_cast<size_t>(3 * (y * ow + x) + c)], naive(source, method, ow, oh, x, y, c), 2e-3)
                  << w << "x" << h << " to " << ow << "x" << oh << " method " << static_cast<int>(method) << " flip "
                  << flip << " at " << x << "," << y;
      }
  }
}

TEST(Resize, WindowEqualsPartOfWhole) {
  const Image image = noise(61, 47, 6);
  for (const ResizeMethod method : kMethods) {
    const std::vector<float> all = resize(image, method, {61, 30, 0, 30, false}, {47, 40, 0, 40, false});
    const std::vector<float> part = resize(image, method, {61, 30, 7, 11, false}, {47, 40, 12, 20, false});
    for (int y = 0; y < 20; ++y)
      for (int i = 0; i < 33; ++i)
        ASSERT_EQ(part[static_cast<size_t>(33 * y + i)], all[static_cast<size_t>(90 * (y + 12) + 21 + i)]);
  }
}

// Image for the checksums below, from a formula that Python evaluates identically.
Image formula(int width, int height) {
  Image image(width, height);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < 3; ++c) {
        const auto ux = static_cast<uint32_t>(x), uy = static_cast<uint32_t>(y), uc = static_cast<uint32_t>(c);
        const uint32_t v = ux * 2654435761u + uy * 40503u + uc * 97u + ux * uy * 31u;
        image.pixels[static_cast<size_t>(3 * (y * width + x) + c)] = static_cast<uint8_t>((v >> 7) ^ (ux * 5 + uy * 3));
      }
  return image;
}

uint64_t fnv1a(const std::vector<uint8_t>& bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const uint8_t byte : bytes) hash = (hash ^ byte) * 0x100000001b3;
  return hash;
}

TEST(Resize, MatchesPilBitForBit) {
  struct Case {
    int width, height, out_width, out_height;
    uint64_t hash;  // of PIL 9.4's Image.resize(..., BILINEAR).tobytes()
  };
  const std::vector<Case> cases = {
      {37, 23, 16, 12, 0xff46f819bf66c9bf},   {16, 12, 37, 23, 0xabf6740915f3686f},
      {100, 80, 32, 32, 0xed828470e0d7296c},  {64, 64, 64, 20, 0x805273db40d66d10},
      {50, 40, 50, 40, 0x7e60896f0321e9c4},   {7, 300, 9, 11, 0x8c02fbfd22dffb6d},
      {1, 1, 5, 4, 0x79ca7cffcf92f659},       {3, 2, 1, 1, 0x89c3c91960d40590},
      {333, 250, 24, 31, 0x4b289f5812d8bdb2},
  };
  for (const Case& c : cases) {
    const Image image = formula(c.width, c.height);
    for (const bool flip : {false, true}) {
      const Image source = flip ? mirrored(image) : image;
      Filter<int32_t> x, y;
      make_filter({c.width, c.out_width, 0, c.out_width, flip}, x);
      make_filter({c.height, c.out_height, 0, c.out_height, false}, y);
      std::vector<uint8_t> rows, out(static_cast<size_t>(3 * c.out_width * c.out_height));
      resample(source.view(), x, y, rows, out.data());
      EXPECT_EQ(fnv1a(out), c.hash) << c.width << "x" << c.height << " to " << c.out_width << "x" << c.out_height
                                    << " flip " << flip;
    }
  }
}

// PyTorch's interpolate(mode="bilinear", align_corners=False), which clamps the position before splitting it.
double half_pixel_sample(const Image& image, int out_width, int out_height, int x, int y, int c) {
  const auto split = [](int i, int in, int out) {
    const double position = std::max(0.0, (i + 0.5) * in / out - 0.5);
    const int low = std::min(static_cast<int>(position), in - 1);
    return std::tuple{low, std::min(low + 1, in - 1), position - low};
  };
  const auto [left, right, across] = split(x, image.width, out_width);
  const auto [top, bottom, down] = split(y, image.height, out_height);
  const auto at = [&](int row, int column) { return static_cast<double>(image.view().row(row)[3 * column + c]); };
  return (1 - down) * ((1 - across) * at(top, left) + across * at(top, right)) +
         down * ((1 - across) * at(bottom, left) + across * at(bottom, right));
}

std::vector<uint8_t> half_pixel_resize(const Image& image, int width, int height, bool flip, int64_t stride) {
  Filter<float> x, y;
  make_half_pixel_filter({image.width, width, 0, width, flip}, x);
  make_half_pixel_filter({image.height, height, 0, height, false}, y);
  std::vector<float> rows;
  std::vector<uint8_t> out(static_cast<size_t>(stride * height), uint8_t{77});
  resample(image.view(), x, y, rows, out.data(), stride);
  return out;
}

TEST(Resize, HalfPixelBilinearMatchesTorchAndFlips) {
  for (const auto& [w, h, ow, oh] :
       {std::array{37, 23, 16, 12}, {16, 12, 37, 23}, {20, 20, 20, 20}, {1, 1, 4, 3}, {2, 9, 5, 2}, {90, 3, 11, 8}}) {
    const Image image = noise(w, h, 5);
    const int64_t stride = 3 * ow + 5;
    const std::vector<uint8_t> out = half_pixel_resize(image, ow, oh, false, stride);
    const std::vector<uint8_t> turned = half_pixel_resize(image, ow, oh, true, stride);
    for (int y = 0; y < oh; ++y) {
      for (int x = 0; x < ow; ++x)
        for (int c = 0; c < 3; ++c) {
          const uint8_t value = out[static_cast<size_t>(y * stride + 3 * x + c)];
          ASSERT_NEAR(value, half_pixel_sample(image, ow, oh, x, y, c), 0.501);
          ASSERT_EQ(turned[static_cast<size_t>(y * stride + 3 * (ow - 1 - x) + c)], value);
        }
      for (int64_t beside = 3 * ow; beside < stride; ++beside)
        ASSERT_EQ(out[static_cast<size_t>(y * stride + beside)], 77);
    }
  }
}

TEST(Resize, RejectsFiltersOutsideTheSource) {
  const Image image = noise(8, 8, 1);
  EXPECT_THROW(resize(image, ResizeMethod::bilinear, {20, 4, 0, 4, false}, {8, 4, 0, 4, false}), Error);
  EXPECT_THROW(resize(image, ResizeMethod::bilinear, {8, 4, 2, 3, false}, {8, 4, 0, 4, false}), Error);
}

}  // namespace
}  // namespace dtrain::data
