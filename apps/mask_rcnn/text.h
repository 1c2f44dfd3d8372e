// Draws text in a built-in font for printable ASCII.
#pragma once

#include <string>
#include <string_view>

#include "apps/mask_rcnn/canvas.h"

namespace dtrain::mask_rcnn {

// At scale 1, capitals are 7 pixels high, and a line 9 including descenders. Scales are multiples of 0.5, at least 1;
// sizes are rounded up to whole pixels.

// Width of a text in pixels. Other UTF-8 characters are shown as '?'.
int text_width(std::string_view text, double scale);
int text_height(double scale);
int cap_height(double scale);

// Truncates `text` with ".." to fit into `width` pixels; empty if nothing fits.
std::string shortened(std::string_view text, double scale, int width);

// Draws `text` with the upper left corner of its capitals at (x, y).
void draw_text(Canvas& canvas, int x, int y, std::string_view text, double scale, Color color);

}  // namespace dtrain::mask_rcnn
