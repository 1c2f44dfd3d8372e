#include "dtrain/data/image_ops.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "dtrain/core/error.h"

namespace dtrain::data {
namespace {

using Levels = std::array<uint8_t, 256>;

size_t samples_of(const Image& image) { return size_t{3} * static_cast<size_t>(image.width) * image.height; }
size_t pixels_of(const Image& image) { return static_cast<size_t>(image.width) * image.height; }

// PIL's mode L.
uint8_t grey_of(const uint8_t* rgb) {
  return static_cast<uint8_t>((rgb[0] * 19595 + rgb[1] * 38470 + rgb[2] * 7471 + 0x8000) >> 16);
}

// PIL's blend: `factor` parts of `level`, the rest of `base`, truncated.
uint8_t blend(int base, int level, float factor) {
  const float mixed = static_cast<float>(base) + factor * static_cast<float>(level - base);
  return static_cast<uint8_t>(std::clamp(mixed, 0.0f, 255.0f));
}

// Applies a lookup table per channel.
void look_up(Image& image, const std::array<Levels, 3>& tables) {
  uint8_t* pixel = image.pixels.data();
  for (size_t i = 0; i < pixels_of(image); ++i, pixel += 3)
    for (size_t c = 0; c < 3; ++c) pixel[c] = tables[c][pixel[c]];
}

template <class Change>
void change_levels(Image& image, Change change) {
  Levels table;
  for (int level = 0; level < 256; ++level) table[static_cast<size_t>(level)] = static_cast<uint8_t>(change(level));
  for (size_t i = 0; i < samples_of(image); ++i) image.pixels[i] = table[image.pixels[i]];
}

std::array<std::array<int64_t, 256>, 3> histograms_of(const Image& image) {
  std::array<std::array<int64_t, 256>, 3> counts{};
  const uint8_t* pixel = image.pixels.data();
  for (size_t i = 0; i < pixels_of(image); ++i, pixel += 3)
    for (size_t c = 0; c < 3; ++c) ++counts[c][pixel[c]];
  return counts;
}

Levels unchanged() {
  Levels table;
  for (size_t level = 0; level < 256; ++level) table[level] = static_cast<uint8_t>(level);
  return table;
}

Levels spread(const std::array<int64_t, 256>& counts) {
  Levels table = unchanged();
  int low = 0, high = 255;
  while (low < 255 && counts[static_cast<size_t>(low)] == 0) ++low;
  while (high > 0 && counts[static_cast<size_t>(high)] == 0) --high;
  if (high <= low) return table;
  const double scale = 255.0 / (high - low), offset = -low * scale;
  for (int level = 0; level < 256; ++level)
    table[static_cast<size_t>(level)] =
        static_cast<uint8_t>(std::clamp(static_cast<int>(level * scale + offset), 0, 255));
  return table;
}

Levels equalized(const std::array<int64_t, 256>& counts) {
  Levels table = unchanged();
  int64_t sum = 0, last = 0;
  for (const int64_t count : counts) {
    sum += count;
    if (count > 0) last = count;
  }
  const int64_t step = (sum - last) / 255;  // 0 also for a single level
  if (step == 0) return table;
  int64_t n = step / 2;
  for (size_t level = 0; level < 256; ++level) {
    table[level] = static_cast<uint8_t>(std::min<int64_t>(n / step, 255));
    n += counts[level];
  }
  return table;
}

template <class TableOf>
void change_by_histogram(Image& image, TableOf table_of) {
  const auto counts = histograms_of(image);
  look_up(image, {table_of(counts[0]), table_of(counts[1]), table_of(counts[2])});
}

struct Hsv {
  uint8_t hue, saturation, value;
};

// Mixed single and double precision, as in PIL.
Hsv hsv_of(const uint8_t* rgb) {
  const uint8_t r = rgb[0], g = rgb[1], b = rgb[2], high = std::max({r, g, b}), low = std::min({r, g, b});
  if (high == low) return {0, 0, high};
  const auto range = static_cast<float>(high - low), saturation = range / static_cast<float>(high);
  const auto share = [&](uint8_t level) { return static_cast<float>(high - level) / range; };
  float hue;
  if (r == high)
    hue = share(b) - share(g);
  else if (g == high)
    hue = static_cast<float>(2.0 + share(r) - share(b));
  else
    hue = static_cast<float>(4.0 + share(g) - share(r));
  const double turns = hue / 6.0 + 1.0;  // in [5/6, 2)
  hue = static_cast<float>(turns < 1 ? turns : turns - 1);
  const auto level = [](double x) { return static_cast<uint8_t>(std::clamp(static_cast<int>(x * 255.0), 0, 255)); };
  return {level(hue), level(saturation), high};
}

void store(const Hsv& color, uint8_t* rgb) {
  if (color.saturation == 0) {
    std::fill_n(rgb, 3, color.value);
    return;
  }
  const double sextant = static_cast<float>(color.hue) * 6.0 / 255.0;
  const int i = static_cast<int>(sextant);
  const auto fraction = static_cast<float>(sextant - i), saturation = static_cast<float>(color.saturation / 255.0);
  const auto level = [&](double share) { return static_cast<uint8_t>(static_cast<int>(color.value * share + 0.5)); };
  const uint8_t v = color.value, p = level(1.0 - saturation), q = level(1.0 - saturation * fraction),
                t = level(1.0 - saturation * (1.0 - fraction));
  const std::array<std::array<uint8_t, 3>, 6> sextants{
      {{v, t, p}, {q, v, p}, {p, v, t}, {p, q, v}, {t, p, v}, {v, p, q}}};
  std::ranges::copy(sextants[static_cast<size_t>(i % 6)], rgb);
}

// PIL's SMOOTH filter, rounded: weight 5 for the pixel and 1 for each of 8 neighbours; border pixels are unchanged.
void smooth(const Image& image, Image& out) {
  out.pixels = image.pixels;
  out.width = image.width;
  out.height = image.height;
  const int64_t stride = int64_t{3} * image.width;
  for (int y = 1; y + 1 < image.height; ++y) {
    const uint8_t* const from = image.pixels.data() + y * stride;
    uint8_t* const to = out.pixels.data() + y * stride;
    for (int64_t i = 3; i < stride - 3; ++i) {
      const auto three = [&](int64_t at) { return from[at - 3] + from[at] + from[at + 3]; };
      const int sum = three(i - stride) + three(i) + three(i + stride) + 4 * from[i];
      to[i] = static_cast<uint8_t>((2 * sum + 13) / 26);
    }
  }
}

// 16.16 fixed point, rounded.
int64_t fixed(double x) { return static_cast<int64_t>(std::floor(x * 65536.0 + 0.5)); }

// torchvision converts shears to degrees; the last digit can decide which pixel is nearest.
double slope_of(double magnitude) {
  constexpr double kDegree = std::numbers::pi / 180;
  return std::tan(std::atan(magnitude) * (180 / std::numbers::pi) * kDegree);
}

// Python's round(x, 15).
double to_fifteen_digits(double x) { return std::nearbyint(x * 1e15) / 1e15; }

std::array<double, 6> rotation(double degrees, int width, int height) {
  const double angle = -(degrees < 0 ? degrees + 360 : degrees) * (std::numbers::pi / 180);
  const double cosine = to_fifteen_digits(std::cos(angle)), sine = to_fifteen_digits(std::sin(angle));
  const double x = width / 2.0, y = height / 2.0;
  return {cosine, sine, cosine * -x + sine * -y + x, -sine, cosine, -sine * -x + cosine * -y + y};
}

}  // namespace

std::string_view name_of(ImageOp op) {
  constexpr std::array<std::string_view, kImageOps> names{
      "Identity", "ShearX",    "ShearY",    "TranslateX", "TranslateY",   "Rotate",   "Brightness", "Color",
      "Contrast", "Sharpness", "Posterize", "Solarize",   "AutoContrast", "Equalize", "Invert"};
  return names[static_cast<size_t>(op)];
}

void ImageEditor::apply(ImageOp op, double magnitude, Image& image) {
  const double moved = std::trunc(magnitude), factor = 1.0 + magnitude;
  switch (op) {
    case ImageOp::identity:
      return;
    case ImageOp::shear_x:
      return transform({1, slope_of(magnitude), 0, 0, 1, 0}, image);
    case ImageOp::shear_y:
      return transform({1, 0, 0, slope_of(magnitude), 1, 0}, image);
    case ImageOp::translate_x:
      return transform({1, 0, -moved, 0, 1, 0}, image);
    case ImageOp::translate_y:
      return transform({1, 0, 0, 0, 1, -moved}, image);
    case ImageOp::rotate:
      if (magnitude != 0) transform(rotation(magnitude, image.width, image.height), image);
      return;
    case ImageOp::brightness:
      return scale_brightness(image, static_cast<float>(factor));
    case ImageOp::color:
      return scale_saturation(image, static_cast<float>(factor));
    case ImageOp::contrast:
      return scale_contrast(image, static_cast<float>(factor));
    case ImageOp::sharpness:
      return scale_sharpness(image, static_cast<float>(factor));
    case ImageOp::posterize:
      return change_levels(image, [mask = ~((1 << (8 - static_cast<int>(magnitude))) - 1)](int l) { return l & mask; });
    case ImageOp::solarize:
      return change_levels(image, [magnitude](int level) { return level < magnitude ? level : 255 - level; });
    case ImageOp::auto_contrast:
      return change_by_histogram(image, spread);
    case ImageOp::equalize:
      return change_by_histogram(image, equalized);
    case ImageOp::invert:
      return change_levels(image, [](int level) { return 255 - level; });
  }
  throw Error(concat("unknown image op ", static_cast<int>(op)));
}

void ImageEditor::scale_brightness(Image& image, float factor) {
  change_levels(image, [factor](int level) { return blend(0, level, factor); });
}

void ImageEditor::scale_saturation(Image& image, float factor) {
  uint8_t* pixel = image.pixels.data();
  for (size_t i = 0; i < pixels_of(image); ++i, pixel += 3) {
    const int grey = grey_of(pixel);
    for (int c = 0; c < 3; ++c) pixel[c] = blend(grey, pixel[c], factor);
  }
}

void ImageEditor::scale_contrast(Image& image, float factor) {
  const uint8_t* pixel = image.pixels.data();
  int64_t sum = 0;
  for (size_t i = 0; i < pixels_of(image); ++i, pixel += 3) sum += grey_of(pixel);
  const int mean = static_cast<int>(static_cast<double>(sum) / static_cast<double>(pixels_of(image)) + 0.5);
  change_levels(image, [factor, mean](int level) { return blend(mean, level, factor); });
}

void ImageEditor::scale_sharpness(Image& image, float factor) {
  smooth(image, other_);
  for (size_t i = 0; i < samples_of(image); ++i) image.pixels[i] = blend(other_.pixels[i], image.pixels[i], factor);
}

void ImageEditor::move_hue(Image& image, double turns) {
  const auto shift = static_cast<uint8_t>(static_cast<int>(turns * 255));
  uint8_t* pixel = image.pixels.data();
  for (size_t i = 0; i < pixels_of(image); ++i, pixel += 3) {
    Hsv color = hsv_of(pixel);
    color.hue = static_cast<uint8_t>(color.hue + shift);
    store(color, pixel);
  }
}

// PIL's fixed-point affine transform: maps the centre of the first pixel, then adds increments per row and column.
void ImageEditor::transform(const Affine& a, Image& image) {
  std::swap(image.pixels, other_.pixels);
  image.pixels.assign(other_.pixels.size(), 0);
  const int64_t dx = fixed(a[0]), dy = fixed(a[3]), width = image.width, height = image.height;
  int64_t x = fixed(a[2] + a[0] * 0.5 + a[1] * 0.5), y = fixed(a[5] + a[3] * 0.5 + a[4] * 0.5);
  uint8_t* to = image.pixels.data();
  for (int64_t row = 0; row < height; ++row, x += fixed(a[1]), y += fixed(a[4])) {
    int64_t from_x = x, from_y = y;
    for (int64_t column = 0; column < width; ++column, to += 3, from_x += dx, from_y += dy) {
      const int64_t left = from_x >> 16, top = from_y >> 16;
      if (left >= 0 && left < width && top >= 0 && top < height)
        std::copy_n(other_.pixels.data() + 3 * (top * width + left), 3, to);
    }
  }
}

}  // namespace dtrain::data
