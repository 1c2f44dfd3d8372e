#include "apps/mask_rcnn/text.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "apps/mask_rcnn/font.h"

namespace dtrain::mask_rcnn {
namespace {

std::string printable(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool follows = (static_cast<uint8_t>(c) & 0xc0) == 0x80;  // UTF-8 continuation byte
    if (!follows) out += c >= ' ' && c <= '~' ? c : '?';
  }
  return out;
}

// First pixel of a cell; rounding keeps vertical strokes sharp at fractional scales.
int start_of(int cell, double scale) { return static_cast<int>(std::lround(cell * scale)); }

// Advance width of a glyph, including one column of spacing.
int advance(const Glyph& glyph, double scale) { return start_of(glyph.columns() + 1, scale); }

double distance_to_segment(double x, double y, double dx, double dy) {
  const double length = dx * dx + dy * dy;
  const double along = length > 0 ? std::clamp((x * dx + y * dy) / length, 0.0, 1.0) : 0;
  return std::hypot(x - along * dx, y - along * dy);
}

// Joins the cells of a glyph by strokes between centres: smooth slopes and curves at large scales, the bitmap at scale
// 1.
class Strokes {
 public:
  Strokes(const Glyph& glyph, double scale)
      : scale_(scale),
        width_(start_of(glyph.columns(), scale) + 1),
        height_(start_of(Glyph::kRows, scale) + 1),
        cover_(static_cast<size_t>(width_) * static_cast<size_t>(height_)) {
    for (int row = 0; row < Glyph::kRows; ++row)
      for (int column = 0; column < glyph.columns(); ++column)
        if (glyph.at(column, row)) join(glyph, column, row);
  }

  void draw(Canvas& canvas, int left, int top, Color color) const {
    for (int y = 0; y < height_; ++y)
      for (int x = 0; x < width_; ++x) {
        const float opacity = cover_[static_cast<size_t>(y) * static_cast<size_t>(width_) + static_cast<size_t>(x)];
        if (opacity > 0) canvas.blend(left + x, top + y, color, opacity);
      }
  }

 private:
  void join(const Glyph& glyph, int column, int row) {
    const bool right = glyph.at(column + 1, row), below = glyph.at(column, row + 1);
    stroke(column, row, column, row);
    if (right) stroke(column, row, column + 1, row);
    if (below) stroke(column, row, column, row + 1);
    // A diagonal, unless the cells are connected around the corner.
    if (glyph.at(column + 1, row + 1) && !right && !below) stroke(column, row, column + 1, row + 1);
    if (glyph.at(column - 1, row + 1) && !glyph.at(column - 1, row) && !below) stroke(column, row, column - 1, row + 1);
  }

  void stroke(int from_column, int from_row, int to_column, int to_row) {
    const double half = scale_ / 2, x0 = start_of(from_column, scale_) + half, y0 = start_of(from_row, scale_) + half;
    const double x1 = start_of(to_column, scale_) + half, y1 = start_of(to_row, scale_) + half;
    const int left = std::max(0, static_cast<int>(std::min(x0, x1) - half - 1));
    const int top = std::max(0, static_cast<int>(std::min(y0, y1) - half - 1));
    for (int y = top; y < std::min<double>(height_, std::max(y0, y1) + half + 1); ++y)
      for (int x = left; x < std::min<double>(width_, std::max(x0, x1) + half + 1); ++x) {
        const double distance = distance_to_segment(x + 0.5 - x0, y + 0.5 - y0, x1 - x0, y1 - y0);
        float& cover = cover_[static_cast<size_t>(y) * static_cast<size_t>(width_) + static_cast<size_t>(x)];
        cover = std::max(cover, static_cast<float>(std::clamp(half + 0.5 - distance, 0.0, 1.0)));
      }
  }

  double scale_;
  int width_, height_;
  std::vector<float> cover_;
};

}  // namespace

int text_width(std::string_view text, double scale) {
  int width = 0;
  for (const char c : printable(text)) width += advance(Glyph(c), scale);
  return std::max(0, width - static_cast<int>(scale));
}

int text_height(double scale) { return static_cast<int>(std::ceil(Glyph::kRows * scale)); }

int cap_height(double scale) { return static_cast<int>(std::ceil(Glyph::kCapRows * scale)); }

std::string shortened(std::string_view text, double scale, int width) {
  std::string begin = printable(text);
  if (text_width(begin, scale) <= width) return begin;
  while (!begin.empty()) {
    begin.pop_back();
    if (begin.ends_with(' ')) continue;
    if (!begin.empty() && text_width(begin + "..", scale) <= width) return begin + "..";
  }
  return "";
}

void draw_text(Canvas& canvas, int x, int y, std::string_view text, double scale, Color color) {
  for (const char c : printable(text)) {
    const Glyph glyph(c);
    if (x >= canvas.width()) return;
    if (c != ' ') Strokes(glyph, scale).draw(canvas, x, y, color);
    x += advance(glyph, scale);
  }
}

}  // namespace dtrain::mask_rcnn
