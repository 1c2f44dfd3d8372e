#include "apps/mask_rcnn/canvas.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "dtrain/core/error.h"
#include "dtrain/data/png.h"
#include "libdtrain/io/result_file.h"

namespace dtrain::mask_rcnn {
namespace {

double to_linear(uint8_t level) {
  const double x = level / 255.0;
  return x <= 0.04045 ? x / 12.92 : std::pow((x + 0.055) / 1.055, 2.4);
}

double from_linear(double x) { return x <= 0.0031308 ? 12.92 * x : 1.055 * std::pow(x, 1 / 2.4) - 0.055; }

// Converts from Ottosson's perceptually uniform OKLab colour space to linear RGB.
std::array<double, 3> linear_rgb(double lightness, double a, double b) {
  const double l = std::pow(lightness + 0.3963377774 * a + 0.2158037573 * b, 3);
  const double m = std::pow(lightness - 0.1055613458 * a - 0.0638541728 * b, 3);
  const double s = std::pow(lightness - 0.0894841775 * a - 1.2914855480 * b, 3);
  return {4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
          -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
          -0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s};
}

// The most saturated colour up to `chroma` within the sRGB gamut.
Color from_oklch(double lightness, double chroma, double hue) {
  const double a = std::cos(hue), b = std::sin(hue);
  std::array<double, 3> rgb{};
  for (double c = chroma; c >= 0; c -= 0.005) {
    rgb = linear_rgb(lightness, c * a, c * b);
    if (std::all_of(rgb.begin(), rgb.end(), [](double x) { return x >= 0 && x <= 1; })) break;
  }
  const auto level = [](double x) {
    return static_cast<uint8_t>(std::lround(255 * from_linear(std::clamp(x, 0.0, 1.0))));
  };
  return {level(rgb[0]), level(rgb[1]), level(rgb[2])};
}

uint8_t mixed(uint8_t below, uint8_t above, double opacity) {
  return static_cast<uint8_t>(std::lround(below + opacity * (above - below)));
}

double side_of_square(const data::Image& image) { return std::sqrt(static_cast<double>(image.width) * image.height); }

}  // namespace

Color color_of_class(int64_t object_class) {
  if (object_class == 0) return {200, 204, 210};
  // Hues that advance by the golden angle stay distinct from all previous classes; three alternating lightness levels
  // separate the colours of many classes.
  constexpr double kFirstHue = 0.06, kGoldenSection = 0.6180339887498949, kLightness[] = {0.74, 0.62, 0.85};
  const auto index = static_cast<uint64_t>(object_class) - 1;
  const double turn = kFirstHue + kGoldenSection * static_cast<double>(index % 100'000);
  return from_oklch(kLightness[index % 3], 0.21, 2 * std::numbers::pi * (turn - std::floor(turn)));
}

double luminance(Color color) {
  return 0.2126 * to_linear(color.red) + 0.7152 * to_linear(color.green) + 0.0722 * to_linear(color.blue);
}

// Where (L + 0.05) / 0.05 and 1.05 / (L + 0.05) are equal, L is 0.179.
Color text_color(Color background) { return luminance(background) > 0.179 ? kBlack : kWhite; }

Rectangle intersection(const Rectangle& a, const Rectangle& b) {
  const int x = std::max(a.x, b.x), y = std::max(a.y, b.y);
  return {x, y, std::min(a.right(), b.right()) - x, std::min(a.bottom(), b.bottom()) - y};
}

Canvas::Canvas(const data::ImageView& picture) : Canvas(picture.width, picture.height, kBlack) { paste(picture, 0, 0); }

Canvas::Canvas(int width, int height, Color background) {
  DT_CHECK(width > 0 && height > 0, "a picture of ", width, "x", height, " pixels cannot be drawn on");
  image_ = data::Image(width, height);
  fill(bounds(), background);
}

Color Canvas::at(int x, int y) const {
  DT_CHECK(x >= 0 && x < width() && y >= 0 && y < height(), "pixel (", x, ", ", y, ") is outside a picture of ",
           width(), "x", height());
  const uint8_t* pixel = image_.view().row(y) + 3 * x;
  return {pixel[0], pixel[1], pixel[2]};
}

void Canvas::blend(int x, int y, Color color, double opacity) {
  if (x < 0 || x >= width() || y < 0 || y >= height()) return;
  uint8_t* pixel =
      image_.pixels.data() + 3 * (static_cast<size_t>(y) * static_cast<size_t>(width()) + static_cast<size_t>(x));
  pixel[0] = mixed(pixel[0], color.red, opacity);
  pixel[1] = mixed(pixel[1], color.green, opacity);
  pixel[2] = mixed(pixel[2], color.blue, opacity);
}

void Canvas::fill(const Rectangle& area, Color color, double opacity) {
  const Rectangle inside = intersection(area, bounds());
  for (int y = inside.y; y < inside.bottom(); ++y)
    for (int x = inside.x; x < inside.right(); ++x) blend(x, y, color, opacity);
}

void Canvas::frame(const Rectangle& area, int line, Color color, double opacity) {
  if (area.empty() || line <= 0) return;
  if (2 * line >= std::min(area.width, area.height)) return fill(area, color, opacity);
  const int between = area.height - 2 * line;
  fill({area.x, area.y, area.width, line}, color, opacity);
  fill({area.x, area.bottom() - line, area.width, line}, color, opacity);
  fill({area.x, area.y + line, line, between}, color, opacity);
  fill({area.right() - line, area.y + line, line, between}, color, opacity);
}

void Canvas::paste(const data::ImageView& picture, int x, int y) {
  const Rectangle inside = intersection({x, y, picture.width, picture.height}, bounds());
  if (inside.empty()) return;
  for (int row = inside.y; row < inside.bottom(); ++row)
    std::copy_n(picture.row(row - y) + 3 * (inside.x - x), 3 * inside.width,
                image_.pixels.data() +
                    3 * (static_cast<size_t>(row) * static_cast<size_t>(width()) + static_cast<size_t>(inside.x)));
}

int Canvas::line_width() const { return std::max(1, static_cast<int>(std::lround(side_of_square(image_) / 320))); }

double Canvas::text_scale() const { return std::max(1.0, std::round(side_of_square(image_) / 205) / 2); }

void write_png(const std::string& path, const data::ImageView& picture) {
  const std::vector<std::byte> bytes = data::encode_png(picture);
  ResultFile file(path);
  file.output().write(bytes.data(), bytes.size());
  file.commit();
}

}  // namespace dtrain::mask_rcnn
