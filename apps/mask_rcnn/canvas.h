// Canvas: draws lines and areas on RGB images, with distinguishable colours.
#pragma once

#include <cstdint>
#include <string>

#include "dtrain/data/image.h"

namespace dtrain::mask_rcnn {

struct Color {
  uint8_t red = 0, green = 0, blue = 0;
  bool operator==(const Color&) const = default;
};

constexpr Color kBlack{0, 0, 0}, kWhite{255, 255, 255};

// Colour of a class, the same in all pictures; consecutive classes differ most. Class 0, the background, is light grey
// and used for objects of unknown class.
Color color_of_class(int64_t object_class);
// WCAG 2.1 relative luminance, from 0 (black) to 1 (white).
double luminance(Color color);
// Black or white, whichever has more contrast on `background`: at least 4.58 to 1.
Color text_color(Color background);

// A rectangle in whole pixels; may extend beyond the picture.
struct Rectangle {
  int x = 0, y = 0, width = 0, height = 0;
  bool operator==(const Rectangle&) const = default;
  int right() const { return x + width; }
  int bottom() const { return y + height; }
  bool empty() const { return width <= 0 || height <= 0; }
};

// Intersection of two rectangles; may be empty.
Rectangle intersection(const Rectangle& a, const Rectangle& b);

// All drawing is clipped to the picture. Opacity: from 0 (transparent) to 1.
class Canvas {
 public:
  // Copies `picture`. Throws Error if it has no pixels.
  explicit Canvas(const data::ImageView& picture);
  Canvas(int width, int height, Color background);

  int width() const { return image_.width; }
  int height() const { return image_.height; }
  Rectangle bounds() const { return {0, 0, width(), height()}; }
  const data::Image& image() const { return image_; }
  Color at(int x, int y) const;  // inside the picture

  void blend(int x, int y, Color color, double opacity);
  void fill(const Rectangle& area, Color color, double opacity = 1);
  // The inner border of `area`, `line` pixels wide.
  void frame(const Rectangle& area, int line, Color color, double opacity = 1);
  // Copies `picture` with its upper left corner at (x, y).
  void paste(const data::ImageView& picture, int x, int y);

  // Line width and text scale (see text.h) for a picture of this size.
  int line_width() const;
  double text_scale() const;

 private:
  data::Image image_;
};

// Writes an 8-bit RGB PNG file atomically. Throws Error(Fault::resource) on failure.
void write_png(const std::string& path, const data::ImageView& picture);

}  // namespace dtrain::mask_rcnn
