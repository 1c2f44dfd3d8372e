// A picture that is drawn on: lines and areas over RGB pixels, and colours that can be told apart.
#pragma once

#include <cstdint>
#include <string>

#include "data/image.h"

namespace dtrain::mask_rcnn {

struct Color {
  uint8_t red = 0, green = 0, blue = 0;
  bool operator==(const Color&) const = default;
};

constexpr Color kBlack{0, 0, 0}, kWhite{255, 255, 255};

// The colour of a class of objects, the same in all pictures: neighbours among the classes differ most. Class 0, the
// background, stands for objects of no known class and is a light grey.
Color color_of_class(int64_t object_class);
// Luminance by WCAG 2.1, from 0 for black to 1 for white.
double luminance(Color color);
// Black or white, whichever is easier to read on `background`: the contrast is at least 4.58 to 1.
Color text_color(Color background);

// A rectangle of whole pixels, which may lie outside the picture in part or as a whole.
struct Rectangle {
  int x = 0, y = 0, width = 0, height = 0;
  bool operator==(const Rectangle&) const = default;
  int right() const { return x + width; }
  int bottom() const { return y + height; }
  bool empty() const { return width <= 0 || height <= 0; }
};

// What two rectangles share; it is empty where they share nothing.
Rectangle intersection(const Rectangle& a, const Rectangle& b);

// Pixels outside the picture are left out by all that draws. An opacity is from 0, which changes nothing, to 1.
class Canvas {
 public:
  // A copy of `picture`. Throws Error where it has no pixels.
  explicit Canvas(const data::ImageView& picture);
  Canvas(int width, int height, Color background);

  int width() const { return image_.width; }
  int height() const { return image_.height; }
  Rectangle bounds() const { return {0, 0, width(), height()}; }
  const data::Image& image() const { return image_; }
  Color at(int x, int y) const;  // inside the picture

  void blend(int x, int y, Color color, double opacity);
  void fill(const Rectangle& area, Color color, double opacity = 1);
  // The border of `area`, `line` pixels wide, all of them inside it.
  void frame(const Rectangle& area, int line, Color color, double opacity = 1);
  // Copies `picture` to where its upper left corner is at (x, y).
  void paste(const data::ImageView& picture, int x, int y);

  // How wide lines are, and how large text is (see text.h), to suit a picture of this size.
  int line_width() const;
  double text_scale() const;

 private:
  data::Image image_;
};

// Writes a PNG file of 8-bit RGB, in one step once it is complete. Throws Error(Fault::resource) where that fails.
void write_png(const std::string& path, const data::ImageView& picture);

}  // namespace dtrain::mask_rcnn
